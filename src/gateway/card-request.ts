/** A request for one card by its request id, or for a list of cards by filters (specification 4.1, 4.2). */
export type CardRequest = {
  /** The account whose access token is sent; ignored where accounts share one. */
  merchantCode: string | undefined
  /** Percent-encoded in the path. `.` and `..` cannot be encoded; they name no card. */
  virtualCardRequestId?: string | undefined
  /** Query parameters by the names of the specification; undefined ones are omitted. */
  query?: Readonly<Record<string, string | undefined>>
  language?: 'vi' | 'en' | undefined
}

/** Returns path and query of a request. */
export function buildCardPath(
  root: string,
  { virtualCardRequestId: id, query = {} }: CardRequest,
): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.append(name, value)
  }
  const search = parameters.toString()
  const path = id === undefined ? root : `${root}/${encodeURIComponent(id)}`
  return search === '' ? path : `${path}?${search}`
}

export function buildCardHeaders({ language }: CardRequest, token: string): Record<string, string> {
  return {
    authorization: `Bearer ${token}`,
    accept: 'application/json',
    'content-type': 'application/json',
    ...(language ? { 'accept-language': language } : {}),
  }
}

/** Returns whether an id is a dot segment, which no encoding keeps in its place (RFC 3986, 5.2.4). */
export function isDotSegment(id: string | undefined): boolean {
  return id === '.' || id === '..'
}
