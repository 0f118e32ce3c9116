# Makes the row's Python environment: wheels only, so that no code of a package runs here.
set -eu
python3 -m venv --upgrade-deps /opt/miniconda3/envs/testbed 2>/dev/null \
    || python3 -m venv /opt/miniconda3/envs/testbed
/opt/miniconda3/envs/testbed/bin/python -m pip install --quiet --disable-pip-version-check \
    --only-binary :all: -r /tmp/swe/requirements.txt
rm -rf /root/.cache /tmp/swe
