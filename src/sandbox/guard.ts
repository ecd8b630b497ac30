import { isIP } from 'node:net'
import { bodyLimit } from 'hono/body-limit'
import { createMiddleware } from 'hono/factory'

/** As much as the service takes. */
const MAX_BODY_BYTES = 64 * 1024

/**
 * Refuses requests that name another host. After DNS rebinding, a foreign page has the same origin as the sandbox for
 * the browser, and could read and control it.
 * @param own the host that the sandbox listens on
 */
export function requireOwnHost(own: string) {
  return createMiddleware(async (c, next) => {
    const name = readHostName(c.req.header('host'))
    if (name !== undefined && (name === own || isLoopback(name))) return next()
    return c.text('This host is not served here: use localhost or 127.0.0.1.', 421)
  })
}

function readHostName(header = ''): string | undefined {
  const url = `http://${header}/`
  if (!/^[\w.:[\]-]+$/.test(header) || !URL.canParse(url)) return undefined
  return new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
}

function isLoopback(name: string): boolean {
  if (isIP(name) === 0) return name === 'localhost' || name.endsWith('.localhost')
  return name === '::1' || name.startsWith('127.')
}

/** Refuses larger bodies before they are in memory. */
export function limitBodies() {
  return bodyLimit({
    maxSize: MAX_BODY_BYTES,
    onError: (c) => c.text(`The body is larger than ${MAX_BODY_BYTES} bytes.`, 413),
  })
}

/** Refuses what a page of another site sends through a browser, except reads. Programs send neither header. */
export const requireSameOrigin = createMiddleware(async (c, next) => {
  const origin = c.req.header('origin')
  const host = origin !== undefined && URL.canParse(origin) ? new URL(origin).host : undefined
  const isOwn =
    (origin === undefined || host === c.req.header('host')) &&
    c.req.header('sec-fetch-site') !== 'cross-site'
  if (isOwn || c.req.method === 'GET' || c.req.method === 'HEAD') return next()
  return c.text('Requests from pages of other sites are not allowed.', 403)
})
