#!/usr/bin/env bash
# Trains on a TPU VM of Google Cloud, and brings the run back:
#
#   BUCKET=gs://my-bucket jobs/tpu_vm.sh
#
# needs the command line `gcloud`, logged in to a project that may create TPU VMs, and
# $BUCKET/squad.npz, made with `python -m qanet pack` and copied there. The run
# directory is copied to $BUCKET/runs/qanet every few minutes; when the machine is taken
# away, run the script again: it goes on at the last checkpoint that was copied.
set -euo pipefail
cd "$(dirname "$0")/.."

: "${BUCKET:?give the bucket that holds squad.npz, for example BUCKET=gs://my-bucket}"
NAME=${NAME:-qanet}
ZONE=${ZONE:-us-west4-a}
TYPE=${TYPE:-v5litepod-4}
VERSION=${VERSION:-v2-alpha-tpuv5-lite}

on_tpu() {
  gcloud compute tpus tpu-vm ssh "$NAME" --zone="$ZONE" --command="$1"
}

delete() {
  gcloud compute tpus tpu-vm delete "$NAME" --zone="$ZONE" --quiet
}

# An hour of a TPU that nobody uses costs as much as one that trains. So it is deleted at
# the end, also where it was being created when this was stopped.
if told=$(gcloud compute tpus tpu-vm describe "$NAME" --zone="$ZONE" 2>&1); then
  trap delete EXIT
else
  if [[ $told != *NOT_FOUND* ]]; then
    echo "$told" >&2
    exit 1
  fi
  trap delete EXIT
  gcloud compute tpus tpu-vm create "$NAME" \
    --zone="$ZONE" --accelerator-type="$TYPE" --version="$VERSION"
fi

tar -czf - qanet train.py evaluate.py constraints.txt | on_tpu "mkdir -p job && tar -xzf - -C job"

on_tpu "BUCKET='$BUCKET' bash -s" <<'ON_TPU'
set -euo pipefail
cd job
# The machine's own Python may be too old.
python3 -m pip install --quiet uv
[ -d environment ] || python3 -m uv venv --quiet --python 3.12 environment
python3 -m uv pip install --quiet --python environment/bin/python3 \
  --constraint constraints.txt \
  'jax[tpu]' h5py keras numpy pydantic PyYAML tensorboardX tqdm
. environment/bin/activate
mkdir -p runs/qanet
gcloud storage cp "$BUCKET/squad.npz" .
# A copy that fails must not look like none: the saved run would be overwritten.
saved=$(gcloud storage ls --recursive "$BUCKET")
if grep -qxF "$BUCKET/runs/qanet/config.json" <<<"$saved"; then
  gcloud storage rsync --recursive "$BUCKET/runs/qanet" runs/qanet
fi

save() {
  # Without files that are half written. The configuration last, and only where it was
  # there before the rest was copied: where it is, a training can be resumed.
  local begun=
  [ ! -f runs/qanet/config.json ] || begun=1
  gcloud storage rsync --recursive --exclude '.*\.tmp$|^config\.json$' "$@" \
    runs/qanet "$BUCKET/runs/qanet" || return 1
  [ -z "$begun" ] || gcloud storage cp runs/qanet/config.json "$BUCKET/runs/qanet/"
}
(while sleep 120; do save || true; done) >/dev/null 2>&1 &
saving=$!
# The machine is deleted next, so one failure must not be the last word.
save_at_last() {
  kill "$saving" || true
  for _ in 1 2 3 4 5; do
    if save; then
      # All of it is there, so checkpoints that the training has removed may go.
      save --delete-unmatched-destination-objects || true
      return
    fi
    sleep 30
  done
  echo "the run could not be copied to $BUCKET" >&2
  exit 1
}
trap save_at_last EXIT

export KERAS_BACKEND=jax
if [ -f runs/qanet/config.json ]; then
  python3 train.py --resume --output runs/qanet
else
  python3 train.py --preset qanet --packed squad.npz --output runs/qanet \
    --set distribution.strategy=mirrored --set training.precision=bfloat16
fi
ON_TPU

mkdir -p runs/qanet-tpu
gcloud storage rsync --recursive "$BUCKET/runs/qanet" runs/qanet-tpu
echo "the run is in runs/qanet-tpu"
