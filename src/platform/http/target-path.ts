import { getPath } from 'hono/utils/url'

/** A path as it is, without escapes, dots and anything else that a URL parser changes. */
const PLAIN = /^(\/[\w\-/]*)(?:\?|$)/

/**
 * Returns the path of a request's target as the framework's router reads it: of a path or, as a proxy may send
 * it, of a URL (RFC 9112, 3.2), with dot segments removed and escapes decoded.
 * @returns undefined for a target that the framework refuses
 */
export function readTargetPath(target: string | undefined): string | undefined {
  if (target === undefined) return undefined
  const plain = PLAIN.exec(target)?.[1]
  if (plain !== undefined) return plain
  const url = target.startsWith('/') ? `http://localhost${target}` : target
  if (target.includes('\\') || !/^https?:\/\//.test(url) || !URL.canParse(url)) return undefined
  return getPath(new Request(`http://localhost${new URL(url).pathname}`))
}
