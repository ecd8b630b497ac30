type DatabaseHost = { host: string; port: number | undefined }

/** The servers of a database in the order to try them; one at a time accepts writes. */
export type DatabaseAddress = {
  /** Empty if the URL names none, so that the driver uses PGHOST and PGPORT. */
  hosts: readonly DatabaseHost[]
  parameters: URLSearchParams
}

const URL_PARTS = /^postgres(?:ql)?:\/\/(?<authority>[^/?#]*)(?<rest>[^#]*)/i
const HOST = /^(?:\[(?<address>[0-9a-f:.%]+)\]|(?<name>[^[\]:]+))(?::(?<port>\d{1,5}))?$/i

/** Parses a database URL like libpq: `postgres://user:password@one:5432,two:5433/name`. */
export function parseDatabaseUrl(url: string): DatabaseAddress | undefined {
  const { authority, rest } = URL_PARTS.exec(url)?.groups ?? {}
  if (authority === undefined || rest === undefined) return undefined
  const list = authority.slice(authority.lastIndexOf('@') + 1)
  const hosts = list === '' ? [] : list.split(',').map(parseHost)
  const known = hosts.flatMap((host) => host ?? [])
  // The rest, such as a name that cannot be decoded, is checked by the URL parser.
  const single = `postgres://${authority.slice(0, authority.length - list.length)}host${rest}`
  if (known.length < hosts.length || !URL.canParse(single)) return undefined
  return { hosts: known, parameters: new URL(single).searchParams }
}

function parseHost(text: string): DatabaseHost | undefined {
  const { address, name, port } = HOST.exec(text)?.groups ?? {}
  const host = address ?? (name === undefined ? undefined : decode(name))
  if (host === undefined) return undefined
  if (port === undefined) return { host, port }
  return Number(port) > 0 && Number(port) < 65_536 ? { host, port: Number(port) } : undefined
}

function decode(name: string): string | undefined {
  try {
    return decodeURIComponent(name)
  } catch {
    return undefined
  }
}

/** The parameter that `inSchema` adds. It is not among the known ones, so DATABASE_URL cannot contain it. */
const SCHEMA = 'search_path'

/** Adds a schema to the URL. Sessions opened with the result see only this schema. */
export function inSchema(url: string, schema: string): string {
  const [before = ''] = url.split('#', 1)
  return `${before}${before.includes('?') ? '&' : '?'}${SCHEMA}=${schema}`
}

/** Returns the schema in a URL; null if it is left to the server. */
export function readSchema({ parameters }: Pick<DatabaseAddress, 'parameters'>): string | null {
  return parameters.get(SCHEMA)
}

/**
 * The supported parameters. libpq and the driver would turn any other into a session setting, which could undo ours.
 * `target_session_attrs` may ask, by either name, for what is always done: use only a server that accepts writes.
 */
const KNOWN =
  /^(application_name|ssl|sslmode|sslrootcert)=|^target_session_attrs=(primary|read-write)$/

export function hasKnownParameters(url: string): boolean {
  const parameters = parseDatabaseUrl(url)?.parameters ?? []
  return [...parameters].every(([name, value]) => KNOWN.test(`${name}=${value}`))
}
