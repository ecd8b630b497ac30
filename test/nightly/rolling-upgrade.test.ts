import { randomInt } from 'node:crypto'
import { expect, it } from 'vitest'
import { migrateDatabase } from '../../src/db/migrate.ts'
import { createLines, plantMigrations } from '../support/migrations.ts'
import { waitUntil } from '../support/wait-until.ts'
import { storeKeys } from './chaos/accounts.ts'
import type { Member } from './chaos/processes.ts'
import { deleteFill, fillTables } from './rolling-upgrade/fill.ts'
import { planNext, REPLACED_CONSTRAINT } from './rolling-upgrade/migrations.ts'
import {
  auditAtRest,
  listReadiness,
  migrateBeside,
  serve,
  startTraffic,
  type Traffic,
} from './rolling-upgrade/play.ts'
import { listRefused, writeTable } from './rolling-upgrade/refused.ts'
import { type Stage, startStage } from './rolling-upgrade/stage.ts'

/** Notifications that each process acknowledges in each phase. */
const ENOUGH = 8
/** Rows of tables on which indexes are built. */
const ROWS = 50_000

/** The service refuses notifications that wait for 0.4 s, whatever makes the database slow. */
const TOO_BUSY =
  'this machine is too busy for the drill: notifications are refused before the upgrade begins'

type Scene = {
  stage: Stage
  traffic: Traffic
  /** Applies the pending migrations of a folder, by default of the present version. */
  migrate(folder?: string): () => Promise<void>
  /** Everything that helps to explain a failure. */
  report(): string
}

/** Plays on two processes of the newest release, on its schema, with traffic; keeps the logs when it fails. */
async function onRunningService(
  play: (scene: Scene, running: Member[]) => Promise<void>,
): Promise<void> {
  const stage = await startStage()
  const { log, lines } = createLines()
  let traffic: Traffic | undefined
  let isOver = false
  const seed = randomInt(1_000_000)
  try {
    const running = await stage.start('released', 2)
    await storeKeys(stage.database.url)
    await fillTables(stage.database, ROWS)
    stage.balancer.pointTo(running)
    traffic = await startTraffic(stage, seed)
    const scene = {
      stage,
      traffic,
      migrate: (folder?: string) => async () => {
        await migrateDatabase(stage.database.url, { log, folder })
      },
      report: () =>
        [
          `seed ${seed}`,
          writeTable(stage.balancer.exchanges),
          ...lines,
          ...stage.listErrors(),
        ].join('\n'),
    }
    await serve(stage, 'before', running, ENOUGH)
    await play(scene, running)
    console.info(scene.report())
    isOver = true
  } finally {
    await traffic?.stop()
    await stage.stop(!isOver)
  }
}

/** Migrates beside processes of the newest release, and replaces them. */
async function replace({ stage, migrate }: Scene, leaving: readonly Member[]): Promise<Member[]> {
  await migrateBeside(stage, 'migration', leaving, ENOUGH, migrate())
  const present = await stage.start('present', 2)
  const all = [...leaving, ...present]
  await serve(stage, 'beside', all, ENOUGH)
  expect(await listReadiness(all)).toEqual(all.map(() => 200))
  stage.balancer.pointTo(present)
  expect(await Promise.all(leaving.map((one) => one.stop()))).toEqual(leaving.map(() => 0))
  await serve(stage, 'after', present, ENOUGH)
  return present
}

it('processes serve before, during and after an upgrade, beside those that replace them and on the next schema: nothing is refused, lost or doubled', async () => {
  await onRunningService(async (scene, running) => {
    const { stage, traffic, migrate, report } = scene
    const { balancer } = stage
    expect(listRefused(balancer.exchanges), TOO_BUSY).toEqual([])
    const present = stage.hasRelease ? await replace(scene, running) : running

    const next = plantMigrations(planNext())
    const isBeside = await migrateBeside(stage, 'next migration', present, ENOUGH, migrate(next))
    expect(isBeside, report()).toBe(true)
    // Longer than the phases before: without a release they are few.
    await serve(stage, 'next schema', present, 5 * ENOUGH)
    expect(await listReadiness(present)).toEqual([200, 200])

    await deleteFill(stage.database)
    const { ledgers, ...audited } = await auditAtRest(stage, traffic)
    expect(audited, report()).toEqual({ problems: [], refusals: [], doubled: [] })
    expect(listRefused(balancer.exchanges), report()).toEqual([])
    expect(stage.listErrors(), report()).toEqual([])
    const { stored, moved, fed } = ledgers
    const counts = [stored.transactions, stored.refunds, moved.movements, fed?.read, fed?.taken]
    for (const one of counts) expect(one?.length, report()).toBeGreaterThan(20)
  })
}, 400_000)

it('a migration that replaces the index of an ON CONFLICT is found: notifications are refused', async () => {
  await onRunningService(async ({ stage, migrate }, running) => {
    const { balancer } = stage
    await migrateBeside(
      stage,
      'migration',
      running,
      0,
      migrate(plantMigrations(REPLACED_CONSTRAINT)),
    )
    balancer.begin('replaced')
    for (const { name } of running) {
      const isFound = () =>
        listRefused(balancer.exchanges).some((one) =>
          one.startsWith(`replaced: ${name} answered POST /ipn with 5`),
        )
      await waitUntil(isFound, { what: `${name} refuses notifications`, everyMs: 50 })
    }
    // Nothing else shows it.
    expect(await listReadiness(running)).toEqual([200, 200])
    expect(stage.listErrors().join('\n')).toContain('42P10')
  })
}, 200_000)
