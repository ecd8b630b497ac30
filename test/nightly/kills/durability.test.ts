import { expect, it } from 'vitest'
import { openDatabase } from '../../../src/db/client.ts'
import { migrateDatabase } from '../../../src/db/migrate.ts'
import { makeFolder, query, startHere } from '../../support/embedded.ts'
import { listChildren, readServerPid } from '../../support/processes.ts'
import { postIpn, signIpn, startTestService } from '../../support/service.ts'

/** The server ends its other processes by itself once it notices that one was killed. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

it('what was acknowledged survives when all Postgres processes are killed right after the response', async () => {
  const folder = makeFolder()
  const server = await startHere(folder, { settings: {} })
  const pid = readServerPid(server.dataDir)
  await migrateDatabase(server.url)
  const own = openDatabase(server.url, 1)
  const [how] = await own.sql`
    select current_setting('synchronous_commit') as commit, current_setting('fsync') as fsync`
  await own.close()
  expect(how).toEqual({ commit: 'on', fsync: 'on' })

  const service = await startTestService({ url: server.url }, 'http://127.0.0.1:1', {
    settings: { ROLE: 'web' },
  })
  const acknowledged: string[] = []
  let sent = 0
  let processes: number[] = []
  let killed = false
  const send = async () => {
    while (!killed && sent < 5000) {
      sent += 1
      const id = `T-${sent}`
      const { status } = await postIpn(service.url, signIpn({ svc_TransactionID: id }))
      if (status === 200) acknowledged.push(id)
      // Listed a little earlier: that takes longer than a commit may wait to be written.
      if (acknowledged.length === 200) processes = [...listChildren(pid), pid]
      if (acknowledged.length === 300 && !killed) {
        killed = true
        for (const pid of processes) killIfThere(pid)
      }
    }
  }
  await Promise.all(Array.from({ length: 16 }, send))
  await service.stop()
  await server.stop()
  expect(acknowledged.length).toBeGreaterThanOrEqual(300)

  const again = await startHere(folder, { settings: {} })
  const stored = await query(again.url, 'select transaction_id as id from transactions')
  const ids = new Set(stored.map(({ id }) => id))
  expect(acknowledged.filter((id) => !ids.has(id))).toEqual([])
}, 60_000)
