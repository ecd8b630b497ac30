import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'
import { describe, expect, it } from 'vitest'
import { readProcess } from '../../src/platform/postgres/embedded/processes.ts'
import { listChildren } from '../support/children.ts'
import {
  killAll,
  makeFolder,
  query,
  READ_BACK,
  readAnswer,
  runFixture,
  STORE,
  Started,
  startElsewhere,
  startHere,
  waitUntilGone,
} from '../support/embedded.ts'
import { waitUntil } from '../support/wait-until.ts'

function isEnding(folder: string): boolean {
  return readFileSync(join(folder, 'postgres', 'postmaster.pid'), 'utf8').includes('stopping')
}

/** Returns whether this process owns the folder. */
function hasOwner(folder: string): boolean {
  return readdirSync(folder)
    .filter((name) => name.startsWith('postgres.owner-'))
    .some((name) => readlinkSync(join(folder, name)).startsWith(`${process.pid}@`))
}

/** Kills the owner while its watchdog is stopped, so that the next start finds the server running. */
async function startOverLivingServer(folder: string, owner: number, watchdog: number) {
  process.kill(watchdog, 'SIGSTOP')
  killAll(owner)
  await waitUntilGone(owner)
  const starting = startHere(folder)
  await waitUntil(() => hasOwner(folder), { what: 'the folder has a new owner' })
  process.kill(watchdog, 'SIGCONT')
  return await starting
}

describe('the embedded database, after a crash,', { timeout: 60_000 }, () => {
  it('ends within a moment when its process is killed, and starts again with its data', async () => {
    const folder = makeFolder()
    const { owner, server, url } = await startElsewhere(folder)
    await query(url, ...STORE)
    killAll(owner)
    await waitUntilGone(server)
    const again = await startHere(folder)
    expect(again.adopted).toBe(false)
    expect(await query(again.url, READ_BACK)).toEqual([{ x: 42 }])
  })

  it('waits for the server of a process just killed to end, and starts another', async () => {
    const folder = makeFolder()
    const { owner, watchdog, url } = await startElsewhere(folder)
    await query(url, ...STORE)
    const again = await startOverLivingServer(folder, owner, watchdog)
    expect(again.adopted).toBe(false)
    expect(await query(again.url, READ_BACK)).toEqual([{ x: 42 }])
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

  it('is taken over when it outlived its process, and then ends with the new one', async () => {
    const folder = makeFolder()
    const first = await startElsewhere(folder)
    await query(first.url, ...STORE)
    killAll(first.watchdog, first.owner)
    await waitUntilGone(first.owner)

    const heir = runFixture('embedded-owner', [folder, 'hold'])
    const taken = Started.parse(await readAnswer(heir))
    expect(taken).toEqual({ adopted: true, pid: first.server, url: first.url })
    expect(await query(taken.url, READ_BACK)).toEqual([{ x: 42 }])

    const [watchdog = 0] = listChildren(heir.pid ?? 0).filter((pid) =>
      readProcess(pid)?.command.startsWith('/bin/sh'),
    )
    const last = await startOverLivingServer(folder, heir.pid ?? 0, watchdog)
    expect(last.adopted).toBe(false)
    expect(readProcess(first.server)).toBeUndefined()
    expect(await query(last.url, READ_BACK)).toEqual([{ x: 42 }])
  })

  it('is not left half created when everything is killed during initialisation', async () => {
    const folder = makeFolder()
    const owner = runFixture('embedded-owner', [folder, 'hold'])
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
    expect(readdirSync(folder).filter((name) => name.includes('init'))).toEqual([])
  })

  it('is not taken over when it is shutting down, although no watchdog ends it', async () => {
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
    await waitUntil(() => hasOwner(folder), { what: 'the folder has a new owner' })
    await client.end()
    expect((await starting).adopted).toBe(false)
  })
})
