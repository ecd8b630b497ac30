import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'
import { describe, expect, it } from 'vitest'
import { startEmbeddedPostgres } from '../../src/platform/postgres/embedded.ts'
import {
  killAll,
  makeFolder,
  query,
  READ_BACK,
  runOwner,
  STORE,
  startElsewhere,
  startHere,
  waitUntilGone,
} from '../support/embedded.ts'
import { listChildren, readProcess } from '../support/processes.ts'
import { waitUntil } from '../support/wait-until.ts'

function isEnding(folder: string): boolean {
  return readFileSync(join(folder, 'postgres', 'postmaster.pid'), 'utf8').includes('stopping')
}

describe('the embedded database, after a crash,', { timeout: 60_000 }, () => {
  it('ends within a moment when its process is killed, and starts again with its data', async () => {
    const folder = makeFolder()
    const { owner, server, url } = await startElsewhere(folder)
    await query(url, ...STORE)
    killAll(owner)
    await waitUntilGone(server)
    const again = await startHere(folder)
    expect(await query(again.url, READ_BACK)).toEqual([{ x: 42 }])
  })

  it('waits for the server of a process just killed to end, and starts another', async () => {
    const folder = makeFolder()
    const { owner, watchdog, url } = await startElsewhere(folder)
    await query(url, ...STORE)
    // The watchdog is stopped meanwhile, so that the start finds the server running.
    process.kill(watchdog, 'SIGSTOP')
    killAll(owner)
    await waitUntilGone(owner)
    const starting = startHere(folder)
    process.kill(watchdog, 'SIGCONT')
    expect(await query((await starting).url, READ_BACK)).toEqual([{ x: 42 }])
  })

  it('starts again after process and server were killed at once', async () => {
    const folder = makeFolder()
    const { owner, server, url } = await startElsewhere(folder)
    await query(url, ...STORE)
    killAll(owner, server)
    await waitUntilGone(owner)
    const again = await startHere(folder)
    expect(await query(again.url, READ_BACK)).toEqual([{ x: 42 }])
  })

  it('that outlived its process and its watchdog is named, and once that is stopped it starts', async () => {
    const folder = makeFolder()
    const { owner, watchdog, server, url } = await startElsewhere(folder)
    await query(url, ...STORE)
    killAll(watchdog, owner)
    await waitUntilGone(owner)
    await expect(startEmbeddedPostgres({ dataDir: folder })).rejects.toThrow(`kill -INT ${server}`)
    process.kill(server, 'SIGINT')
    await waitUntilGone(server)
    expect(await query((await startHere(folder)).url, READ_BACK)).toEqual([{ x: 42 }])
  })

  it('is not left half created when everything is killed during initialisation', async () => {
    const folder = makeFolder()
    const owner = runOwner([folder, 'hold'])
    const isHalfCreated = () =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).some((name) =>
        name.endsWith('PG_VERSION'),
      )
    await waitUntil(isHalfCreated, { what: 'initdb has begun' })
    const watchdogs = listChildren(owner.pid ?? 0)
    const programs = watchdogs.flatMap(listChildren)
    killAll(...watchdogs, ...programs, owner.pid ?? 0)
    const killed = [...programs, owner.pid ?? 0]
    await waitUntil(() => killed.every((pid) => !readProcess(pid)), { what: 'everything is gone' })
    expect(existsSync(join(folder, 'postgres'))).toBe(false)

    const database = await startHere(folder)
    expect(await query(database.url, 'select 1 as one')).toEqual([{ one: 1 }])
    // What the killed program had started may have written until now: the next start removes it.
    await database.stop()
    await startHere(folder)
    expect(readdirSync(folder).filter((name) => name.includes('init'))).toEqual([])
  })

  it('is waited for while it shuts down, although no watchdog ends it', async () => {
    const folder = makeFolder()
    const { owner, watchdog, server, url } = await startElsewhere(folder)
    const client = postgres(url, { max: 1 })
    await client`select 1`
    killAll(watchdog, owner)
    await waitUntilGone(owner)
    // The smart shutdown: no new connections, and the server ends when the last one has closed.
    process.kill(server, 'SIGTERM')
    await waitUntil(() => isEnding(folder), { what: 'the server is ending' })
    const starting = startHere(folder)
    await client.end()
    await starting
    expect(readProcess(server)).toBeUndefined()
  })
})
