import { isIP } from 'node:net'
import { bodyLimit } from 'hono/body-limit'
import { createMiddleware } from 'hono/factory'

/** As the service takes, and more than any message or control request needs. */
const MAX_BODY_BYTES = 64 * 1024

/**
 * Refuses requests that name another host: a page whose name was made to resolve to this machine (DNS rebinding) is of
 * the same origin for the browser, and could read and control the sandbox.
 * @param own the host that the sandbox listens on
 */
export function requireOwnHost(own: string) {
  return createMiddleware(async (c, next) => {
    const name = readHostName(c.req.header('host'))
    if (name !== undefined && (name === own || isLoopback(name))) return next()
    return c.text('This host is not served here: use localhost or 127.0.0.1.', 421)
  })
}

/** Returns the name or address without port and brackets, an address in its usual notation; undefined for none. */
function readHostName(header = ''): string | undefined {
  const url = `http://${header}/`
  if (!/^[\w.:[\]-]+$/.test(header) || !URL.canParse(url)) return undefined
  return new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
}

function isLoopback(name: string): boolean {
  if (isIP(name) === 0) return name === 'localhost' || name.endsWith('.localhost')
  return name === '::1' || name.startsWith('127.')
}

/** Refuses larger bodies, before they are in memory. */
export function limitBodies() {
  return bodyLimit({
    maxSize: MAX_BODY_BYTES,
    onError: (c) => c.text(`The body is larger than ${MAX_BODY_BYTES} bytes.`, 413),
  })
}

/**
 * Rejects unsafe requests that a page of another site sends through a browser: browsers post forms
 * across sites without asking for permission. Programs send neither header and pass.
 */
export const requireSameOrigin = createMiddleware(async (c, next) => {
  const origin = c.req.header('origin')
  const host = origin !== undefined && URL.canParse(origin) ? new URL(origin).host : undefined
  const isOwn =
    (origin === undefined || host === c.req.header('host')) &&
    c.req.header('sec-fetch-site') !== 'cross-site'
  if (isOwn || c.req.method === 'GET' || c.req.method === 'HEAD') return next()
  return c.text('Requests from pages of other sites are not allowed.', 403)
})
