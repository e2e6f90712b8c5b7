# Every task of the project. `./just` lists them; `./just NAME` runs one and sets up first whatever is missing.

set positional-arguments

python := ".venv/bin/python"
parley := python + " -m appliance"

# list every command
default:
    @"{{just_executable()}}" --justfile "{{justfile()}}" --list --unsorted

# install everything that is missing (nothing to do: no output)
setup:
    @{{python}} build/setup.py

# try again what setup had to leave out (live audio needs PortAudio, the echo canceller speex libspeexdsp)
audio:
    @{{python}} build/setup.py --again

# build the models, play a spoken question into the appliance, show and write the answer
demo *args: setup
    @{{parley}} demo "$@"

# start the daemon
run *args: setup
    @{{parley}} run "$@"

# any parley command: ./just parley say "Hello."
parley *args: setup
    @{{parley}} "$@"

# set up, build the models, run every test (arguments go to pytest)
test *args: setup
    @{{parley}} models build
    @{{python}} -m pytest "$@"

# formatting, lint, types, floors
check: setup
    {{python}} -m ruff format --check .
    {{python}} -m ruff check .
    {{python}} -m mypy
    MYPYPATH=build {{python}} -m mypy build/*.py
    .venv/bin/lint-imports

# put the code into the house's format
format: setup
    {{python}} -m ruff format .
    {{python}} -m ruff check --fix .

# measure against the peers (arguments go to `parley bench`)
bench *args: setup bench-setup
    @{{parley}} bench "$@"

# make the peers' own environment in the cache (compiles llama.cpp: about 20 minutes on 2 cores, once)
bench-setup:
    @{{python}} build/bench_env.py

# build, list, verify or remove models (arguments go to `parley models`)
models *args="list": setup
    @{{parley}} models "$@"

# list, make, build, test or install skills (arguments go to `parley skill`)
skill *args="list": setup
    @{{parley}} skill "$@"

# build the shipped skills again, and compare with the modules that are checked in (needs their compilers)
skills: setup
    @{{python}} build/skills.py

# what this box has and lacks, and the exact fix
doctor *args: setup
    @{{parley}} doctor "$@"

# write LICENCES.md: the licence of every model and dependency
licences: setup
    @{{python}} build/licences.py

# write REFERENCE.md: every command, setting and event
reference: setup
    @{{python}} build/reference.py

# remove what was made here, the environment too (the model cache stays)
clean:
    rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist out
