// Adds the bearer token to every request of a program that cannot send one itself. For `node --import`.
import http from 'node:http';
import { createRequire } from 'node:module';
import { realpathSync } from 'node:fs';

const authorization = `Bearer ${process.env.CONFORMANCE_TOKEN}`;
const undici = createRequire(realpathSync(process.argv[1]))('undici');

const withToken = (dispatch) => (options, handler) => {
  const { headers } = options;
  const more = Array.isArray(headers)
    ? [...headers, 'authorization', authorization]
    : { ...(headers?.entries ? Object.fromEntries(headers.entries()) : headers), authorization };
  return dispatch({ ...options, headers: more }, handler);
};
undici.setGlobalDispatcher(new undici.Agent().compose(withToken));
globalThis.fetch = undici.fetch;

const { request } = http;
http.request = (options, ...rest) =>
  request({ ...options, headers: { ...options.headers, authorization } }, ...rest);
