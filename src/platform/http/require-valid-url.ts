import { createMiddleware } from 'hono/factory'
import { DomainError } from '../../errors.ts'
import type { HttpEnv } from './env.ts'

/**
 * Refuses a URL with percent-escapes that are not UTF-8. The framework would take them literally, and
 * `%FF` would name the same object as `%25FF`. Also refuses a host that no URL can have (`shop.1`): the
 * framework would find out only when the whole request is first read.
 * @throws DomainError `invalid_address`, `invalid_request`
 */
export const requireValidUrl = createMiddleware<HttpEnv>(async (c, next) => {
  if (!URL.canParse(c.req.url))
    throw new DomainError('invalid_address', 'Host: is not a valid host')
  const [path = '', query = ''] = c.req.url.split(/\?(.*)/s)
  const invalid = isDecodable(path) ? query.split('&').find((part) => !isDecodable(part)) : path
  if (invalid === undefined) return await next()
  const field = invalid === path ? 'path' : (invalid.split('=')[0] ?? '')
  const message = 'has percent-escapes that are not UTF-8 text'
  throw new DomainError('invalid_request', `${field}: ${message}`, {
    errors: [{ path: field, message }],
  })
})

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
