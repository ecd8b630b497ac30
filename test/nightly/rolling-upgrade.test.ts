import { randomInt } from 'node:crypto'
import { expect, it } from 'vitest'
import { loadMigrations, type Migration } from '../../src/db/load-migrations.ts'
import { migrateDatabase } from '../../src/db/migrate.ts'
import { readPendingMigrations } from '../../src/db/pending-migrations.ts'
import { storeKeys } from '../scenarios/chaos/accounts.ts'
import type { Member } from '../scenarios/chaos/processes.ts'
import { createLines, plantMigrations } from '../support/migrations.ts'
import { waitUntil } from '../support/wait-until.ts'
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
/** Rows of the tables on which the present release builds indexes. */
const ROWS = 50_000

/** The service refuses notifications that wait for 0.4 s, whatever makes the database slow. */
const TOO_BUSY =
  'this machine is too busy for the drill: notifications are refused before the upgrade begins'

type Scene = {
  stage: Stage
  traffic: Traffic
  /** Applies the pending migrations of a folder, by default of the present release. */
  migrate(folder?: string): () => Promise<void>
  /** Everything that helps to explain a failure. */
  report(): string
}

/** Plays on two processes of the previous release, on its schema, with traffic; keeps the logs when it fails. */
async function onPreviousRelease(
  play: (scene: Scene, previous: Member[]) => Promise<void>,
): Promise<void> {
  const stage = await startStage()
  const { log, lines } = createLines()
  let traffic: Traffic | undefined
  let isOver = false
  const seed = randomInt(1_000_000)
  try {
    const previous = await stage.start('previous', 2)
    await storeKeys(stage.database.url)
    await fillTables(stage.database, ROWS)
    stage.balancer.pointTo(previous)
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
    await serve(stage, 'before', previous, ENOUGH)
    await play(scene, previous)
    console.info(scene.report())
    isOver = true
  } finally {
    await traffic?.stop()
    await stage.stop(!isOver)
  }
}

/** What this release adds to the schema of the previous one. */
async function listPending({ database }: Stage): Promise<Migration[]> {
  const pending = await readPendingMigrations(database.sql)
  return (await loadMigrations()).filter(({ name }) => pending.includes(name))
}

it('the previous release serves before, during and after the migration, and the present one beside it and on the next schema: nothing is refused, lost or doubled', async () => {
  await onPreviousRelease(async ({ stage, traffic, migrate, report }, previous) => {
    const { balancer } = stage
    expect(listRefused(balancer.exchanges), TOO_BUSY).toEqual([])
    // An orchestrator may still start what is about to be replaced.
    const late: Member[] = []
    const buildsIndexes = (await listPending(stage)).some(({ concurrent }) => concurrent)
    const served = migrateBeside(stage, 'migration', previous, ENOUGH, migrate(), async () => {
      late.push(...(await stage.start('previous', 1)))
    })
    // A release that builds no index has nothing that waits; the planted next migration always has.
    expect(await served, report()).toBe(buildsIndexes)

    const present = await stage.start('present', 2)
    const leaving = [...previous, ...late]
    await serve(stage, 'beside', [...leaving, ...present], ENOUGH)
    expect(await listReadiness([...leaving, ...present])).toEqual([200, 200, 200, 200, 200])

    balancer.pointTo(present)
    expect(await Promise.all(leaving.map((one) => one.stop()))).toEqual([0, 0, 0])
    await serve(stage, 'after', present, ENOUGH)

    const next = plantMigrations(planNext())
    const isBeside = await migrateBeside(stage, 'next migration', present, ENOUGH, migrate(next))
    expect(isBeside, report()).toBe(true)
    await serve(stage, 'next schema', present, ENOUGH)

    await deleteFill(stage.database)
    const { ledgers, ...audited } = await auditAtRest(stage, traffic)
    expect(audited, report()).toEqual({ problems: [], refusals: [], doubled: [] })
    expect(listRefused(balancer.exchanges), report()).toEqual([])
    expect(stage.listErrors(), report()).toEqual([])
    const { stored, moved, feed } = ledgers
    const counts = [stored.transactions, stored.refunds, moved.movements, feed.read, feed.taken]
    for (const one of counts) expect(one?.length, report()).toBeGreaterThan(20)
  })
}, 400_000)

it('a migration that replaces the index of an ON CONFLICT is found: notifications are refused', async () => {
  await onPreviousRelease(async ({ stage, migrate }, previous) => {
    const { balancer } = stage
    await migrateBeside(
      stage,
      'migration',
      previous,
      0,
      migrate(plantMigrations(REPLACED_CONSTRAINT)),
    )
    balancer.begin('replaced')
    for (const { name } of previous) {
      const isFound = () =>
        listRefused(balancer.exchanges).some((one) =>
          one.startsWith(`replaced: ${name} answered POST /ipn with 5`),
        )
      await waitUntil(isFound, { what: `${name} refuses notifications`, everyMs: 50 })
    }
    // Nothing else shows it.
    expect(await listReadiness(previous)).toEqual([200, 200])
    expect(stage.listErrors().join('\n')).toContain('42P10')
  })
}, 200_000)
