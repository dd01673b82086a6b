python3 -m venv "$HOME/.venv"
# shellcheck disable=SC1091
. "$HOME/.venv/bin/activate"
if [ -f requirements.txt ]; then
  pip install -r requirements.txt
fi
if [ -f pyproject.toml ]; then
  pip install -e .
fi
# What is activated here does not outlive this script: later shells find it by their profile.
printf '%s\n' '. "$HOME/.venv/bin/activate"' >>"$HOME/.bashrc"
