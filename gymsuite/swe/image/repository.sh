# Puts the repository at its base commit, with the history before it and nothing else.
# Called with the commit, the workdir, and "install" where the package is to be installed.
set -eu
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
git clone --quiet --template= --branch main /tmp/swe/repository.bundle "$2"
cd "$2"
test "$(git rev-parse HEAD)" = "$1"
git remote remove origin
git branch --quiet --unset-upstream 2>/dev/null || true
rm -rf .git/logs .git/FETCH_HEAD .git/ORIG_HEAD
if [ "${3-}" = install ]; then
    /opt/miniconda3/envs/testbed/bin/python -m pip install --quiet --disable-pip-version-check \
        --no-index --no-deps --no-build-isolation -e .
fi
git status --porcelain --untracked-files=no | (! grep .)
rm -rf /root/.cache /tmp/swe
