# Read by bash before a row's eval script (BASH_ENV), which stays as it is. The script's calls of
# `python`, `pip` and `pytest` come here first. Nothing of it is exported: programs see none of it.
unset BASH_ENV
__gymsuite_runner=$(</tmp/.gymsuite/runner.py)
__gymsuite_records=/tmp/.gymsuite/records
__gymsuite_nonce=$(</tmp/.gymsuite/nonce)
__gymsuite_rebuild=$(</tmp/.gymsuite/rebuild)
rm -rf /tmp/.gymsuite
mkdir -m 700 /tmp/.gymsuite

# Whether the environment's packages are installed in editable mode, from a checkout.
__gymsuite_editable() {
    local bin; bin=$(dirname "$(type -P python)")
    compgen -G "$bin/../lib/python3*/site-packages/*.egg-link" >/dev/null \
        || grep -qs '"editable": *true' "$bin"/../lib/python3*/site-packages/*.dist-info/direct_url.json
}

# `pip install [-e] .`: done already where the checkout is what is imported, and nothing that an
# installation reads has changed. Otherwise done again, from what is there: there is no network.
__gymsuite_install() {
    if [ -z "$__gymsuite_rebuild" ] && __gymsuite_editable; then
        echo "already installed in editable mode: nothing to do"
    else
        command python -m pip install --no-index --no-deps --no-build-isolation "$@"
    fi
}

__gymsuite_pip() {
    local argument here=
    if [ "${1-}" = install ]; then
        for argument in "${@:2}"; do
            case $argument in
                .|./|.\[*\]|/testbed) here=yes ;;
                -e|--editable|-v|-q|--verbose|--quiet|--no-build-isolation|-e.|--no-use-pep517) ;;
                *) here=; break ;;
            esac
        done
        if [ "$here" ]; then __gymsuite_install "${@:2}"; return; fi
    fi
    PIP_NO_INDEX=1 PIP_RETRIES=0 command python -m pip "$@"
}

__gymsuite_pytest() {
    command python -c "$__gymsuite_runner" "$__gymsuite_nonce" "$__gymsuite_records" "$@"
}

pip() { { local -; set +x; } 2>/dev/null; __gymsuite_pip "$@"; }
pytest() { { local -; set +x; } 2>/dev/null; __gymsuite_pytest "$(type -P pytest)" "$@"; }
python() {
    { local -; set +x; } 2>/dev/null
    case "${1-} ${2-}" in
        "-m pip") __gymsuite_pip "${@:3}" ;;
        "-m pytest") __gymsuite_pytest "" "${@:3}" ;;
        *) command python "$@" ;;
    esac
}
