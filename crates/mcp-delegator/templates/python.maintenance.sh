# shellcheck disable=SC1091
. "$HOME/.venv/bin/activate"
if [ -f requirements.txt ]; then
  pip install -r requirements.txt
fi
if [ -f pyproject.toml ]; then
  pip install -e .
fi
