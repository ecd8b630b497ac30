import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { audit } from './audit/audit.ts'
import { buildPrograms } from './chaos/services.ts'
import { type Cell, startCell } from './citus/cell.ts'
import { type Cluster, findCitus, nameNode, startCluster } from './citus/cluster.ts'

const bin = findCitus()
if (!bin)
  console.info('no cells on Citus: the extension is not installed, so this part is not played')

const CALM_MS = 8_000
const DEAD_MS = 4_000
const AFTER_MS = 8_000

it.skipIf(!bin)(
  'two cells on two servers: one server is killed and a cell moves under load, and nothing acknowledged is lost or doubled',
  async () => {
    const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'ipn-citus-'))
    chmodSync(folder, 0o755)
    const cells: Cell[] = []
    let cluster: Cluster | undefined
    let isOver = false
    try {
      cluster = await startCluster(bin ?? '', folder)
      const programs = buildPrograms(folder)
      const place = { folder, programs, url: cluster.coordinator.url }
      for (const [seed, schema] of ['one', 'two'].entries()) {
        cells.push(await startCell({ ...place, schema, seed: seed + 1 }))
      }
      await play(cluster, cells)
      isOver = true
    } finally {
      for (const cell of cells) await cell.stop()
      await cluster?.stop()
      if (isOver) rmSync(folder, { recursive: true, force: true })
      else console.info(`the logs of the processes are in ${folder}`)
    }
  },
  900_000,
)

async function play({ workers }: Cluster, [one, two]: readonly Cell[]): Promise<void> {
  if (!one || !two) throw new Error('there are two cells')
  const [first, second] = workers.map(nameNode)
  await one.cli('cells', 'move', first ?? '')
  await two.cli('cells', 'move', second ?? '')
  expect([await one.findNode(), await two.findNode()]).toEqual([first, second])

  const calmAt = performance.now()
  await pause(CALM_MS)
  const page = await fetch(`${one.apiUrl}/console`)
  expect([page.status, page.headers.get('content-type')]).toEqual([
    200,
    expect.stringMatching(/^text\/html/),
  ])

  const killedAt = performance.now()
  await workers[0].kill()
  await pause(DEAD_MS)
  const backAt = performance.now()
  await workers[0].start()
  await pause(AFTER_MS)

  const movedAt = performance.now()
  await two.cli('cells', 'move', first ?? '')
  const placedAt = performance.now()
  expect(await two.findNode()).toBe(first)
  await pause(AFTER_MS)
  const overAt = performance.now()

  const told: string[] = []
  const ledgers = await Promise.all([one, two].map((cell) => cell.rest((line) => told.push(line))))
  const figures = {
    calm: { one: one.probe.measure(calmAt, killedAt), two: two.probe.measure(calmAt, killedAt) },
    serverDead: {
      ofThisCellGapMs: one.probe.measure(killedAt, movedAt).gapMs,
      deadMs: backAt - killedAt,
      other: two.probe.measure(killedAt, backAt),
    },
    move: {
      seconds: (placedAt - movedAt) / 1000,
      moved: two.probe.measure(movedAt, overAt),
      other: one.probe.measure(movedAt, placedAt),
    },
    cells: ledgers.map(({ acknowledged, stored, moved, ...rest }) => ({
      acknowledged: {
        notifications: acknowledged.notifications.length,
        refunds: acknowledged.refunds.length,
      },
      stored: { notifications: stored.notifications.length, refunds: stored.refunds.length },
      moved: moved.movements.length,
      problems: audit({ acknowledged, stored, moved, ...rest }),
    })),
  }
  const report = JSON.stringify(
    figures,
    (_, value) => (typeof value === 'number' ? Math.round(value * 10) / 10 : value),
    1,
  )
  console.info(report)
  for (const { problems, acknowledged, moved } of figures.cells) {
    expect(problems, `${report}\n${told.join('\n')}`).toEqual([])
    expect(acknowledged.notifications, report).toBeGreaterThan(50)
    expect(moved, report).toBeGreaterThan(10)
  }
  expect(figures.serverDead.other.refused, report).toBe(0)
}
