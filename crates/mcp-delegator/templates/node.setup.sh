if [ -f package.json ]; then
  if [ -f pnpm-lock.yaml ]; then
    corepack enable && pnpm install --frozen-lockfile
  elif [ -f yarn.lock ]; then
    corepack enable && yarn install --immutable
  elif [ -f package-lock.json ]; then
    npm ci
  else
    npm install
  fi
fi
