git config --global user.name "$GIT_USER_NAME"
git config --global user.email "$GIT_USER_EMAIL"
git config --global init.defaultBranch main
# Secrets are gone when the agent starts. What it shall push with has to be put down here, where it can read it.
git config --global credential.https://github.com.helper store
(umask 077 && printf 'https://x-access-token:%s@github.com\n' "$GITHUB_TOKEN" >"$HOME/.git-credentials")
