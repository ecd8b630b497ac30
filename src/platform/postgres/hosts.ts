type DatabaseHost = { host: string; port: number | undefined }

/** A database's address: servers to try in order, of which one accepts writes at a time. */
export type DatabaseAddress = {
  /** Empty if the URL names none: the driver then follows PGHOST and PGPORT. */
  hosts: readonly DatabaseHost[]
  parameters: URLSearchParams
}

const URL_PARTS = /^postgres(?:ql)?:\/\/(?<authority>[^/?#]*)(?<rest>[^#]*)/i
const HOST = /^(?:\[(?<address>[0-9a-f:.%]+)\]|(?<name>[^[\]:]+))(?::(?<port>\d{1,5}))?$/i

/** Parses a database URL as libpq does: `postgres://user:password@one:5432,two:5433/name`. */
export function parseDatabaseUrl(url: string): DatabaseAddress | undefined {
  const { authority, rest } = URL_PARTS.exec(url)?.groups ?? {}
  if (authority === undefined || rest === undefined) return undefined
  const list = authority.slice(authority.lastIndexOf('@') + 1)
  const hosts = list === '' ? [] : list.split(',').map(parseHost)
  const known = hosts.flatMap((host) => host ?? [])
  // What remains, a name or parameters that cannot be decoded among it, is for the URL's own rules.
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

/** The parameter that `inSchema` adds. A setting cannot have it: it is not among those that are known. */
const SCHEMA = 'search_path'

/** Returns the URL of a schema of the database: sessions that are opened with it see no other. */
export function inSchema(url: string, schema: string): string {
  const [before = ''] = url.split('#', 1)
  return `${before}${before.includes('?') ? '&' : '?'}${SCHEMA}=${schema}`
}

/** Returns the schema of a URL; null if the server chooses. */
export function readSchema({ parameters }: Pick<DatabaseAddress, 'parameters'>): string | null {
  return parameters.get(SCHEMA)
}

/**
 * Parameters that are followed: any other would become a setting of the sessions in libpq or in the driver, and undo
 * those that they need. A session begins only on a server that accepts writes, by whichever of its two names it is
 * requested.
 */
const KNOWN =
  /^(application_name|ssl|sslmode|sslrootcert)=|^target_session_attrs=(primary|read-write)$/

/** Whether every parameter of the URL is one that the service follows. */
export function hasKnownParameters(url: string): boolean {
  const parameters = parseDatabaseUrl(url)?.parameters ?? []
  return [...parameters].every(([name, value]) => KNOWN.test(`${name}=${value}`))
}
