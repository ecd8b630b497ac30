import { describe, expect, it } from 'vitest'
import { hasKnownParameters, parseDatabaseUrl } from '../../../../src/platform/postgres/hosts.ts'

const hostsOf = (url: string) =>
  parseDatabaseUrl(url)?.hosts.map(({ host, port }) => (port ? `${host} ${port}` : host))

describe('a database URL', () => {
  it.each([
    ['postgres://db/ipn', ['db']],
    ['postgresql://u:p@db.internal:6000/ipn?sslmode=require', ['db.internal 6000']],
    ['postgres://u:p@one:5432,two:5433/ipn', ['one 5432', 'two 5433']],
    ['postgres://u:p%40,x@one,two:5433/ipn', ['one', 'two 5433']],
    ['postgres://[::1]:5433,[2001:db8::7]/ipn', ['::1 5433', '2001:db8::7']],
    ['postgres://%2Fvar%2Frun%2Fpostgresql/ipn', ['/var/run/postgresql']],
    ['postgres:///ipn', []],
  ])('%s names its servers in order, each with its own port', (url, hosts) => {
    expect(hostsOf(url)).toEqual(hosts)
  })

  it.each([
    'mysql://db/ipn',
    'postgres:db',
    'postgres://one,,two/ipn',
    'postgres://one:0/ipn',
    'postgres://one:70000/ipn',
    'postgres://one:x/ipn',
    'postgres://[one/ipn',
  ])('%s is none', (url) => {
    expect(parseDatabaseUrl(url)).toBeUndefined()
  })

  it.each([
    ['', true],
    ['?sslmode=verify-full&target_session_attrs=primary&application_name=ipn', true],
    ['?target_session_attrs=read-write', true],
    ['?target_session_attrs=any', false],
    ['?target_session_attrs=prefer-standby', false],
    ['?synchronous_commit=off', false],
    ['?sslmode=require&options=-c%20fsync%3Doff', false],
  ])('that ends with "%s" has known parameters only: %s', (parameters, expected) => {
    expect(hasKnownParameters(`postgres://one,two/ipn${parameters}`)).toBe(expected)
  })
})
