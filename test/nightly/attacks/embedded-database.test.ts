import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'
import { expect, it } from 'vitest'
import { isRoot, makeFolder, query, startHere } from '../../support/embedded.ts'

/** A user of this machine who is neither root nor the server's. */
const STRANGER = { uid: 54_321, gid: 54_321 }

/** Returns the SQLSTATE with which a connection is refused. */
async function tryUrl(url: string): Promise<unknown> {
  const sql = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 10 })
  const refused = await sql`select 1`.then(
    () => 'let in',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  )
  await sql.end({ timeout: 1 })
  return refused
}

it('another user of the machine can neither enter the embedded database nor read its files', async () => {
  const { url, dataDir } = await startHere(makeFolder())
  for (const password of ['guess', 'postgres', 'password']) {
    const guess = new URL(url)
    guess.password = password
    expect([password, await tryUrl(guess.href)]).toEqual([password, '28P01'])
  }
  const methods = await query(url, 'select auth_method from pg_hba_file_rules group by 1')
  expect(methods).toEqual([{ auth_method: 'scram-sha-256' }])
  const settings = await query(
    url,
    `select name, setting from pg_settings
     where name in ('listen_addresses', 'unix_socket_directories') order by 1`,
  )
  expect(settings).toEqual([
    { name: 'listen_addresses', setting: '127.0.0.1' },
    { name: 'unix_socket_directories', setting: '' },
  ])
  expect(statSync(dataDir).mode & 0o077).toBe(0)
  expect(statSync(join(dataDir, 'ipn-password')).mode & 0o077).toBe(0)
  if (!isRoot) return
  const read = (file: string) => spawnSync('/bin/cat', [file], STRANGER).status
  expect(read('/etc/passwd')).toBe(0)
  for (const file of ['ipn-password', 'pg_hba.conf', 'PG_VERSION']) {
    expect([file, read(join(dataDir, file))]).toEqual([file, 1])
  }
})
