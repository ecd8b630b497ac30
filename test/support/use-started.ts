import { afterAll, afterEach, beforeAll } from 'vitest'
import type { Role } from '../../src/access/types.ts'
import type { Service } from '../../src/service.ts'
import { borrowRig } from './borrow-rig.ts'
import { addVisitors, type Visitor } from './console.ts'
import { borrowDatabase, createTestDatabase, emptyTables, type TestDatabase } from './database.ts'
import { type RefundLab, startRefundLab } from './refund-lab.ts'
import { type RefundRig, startRefundRig } from './refunds.ts'
import { expectSaidInVietnamese } from './said-in-vietnamese.ts'
import { type Rig, type RigOptions, startTestService } from './service.ts'

/**
 * Starts something before the tests of a file, or of the `describe` that calls this, and stops it after them.
 * What is returned stands for it in between.
 */
export function useStarted<T extends object>(
  start: () => Promise<T>,
  stop: (started: T) => Promise<void>,
): T {
  let started: T | undefined
  beforeAll(async () => {
    started = await start()
  })
  afterAll(async () => {
    if (started) await stop(started)
  })
  return new Proxy<T>(Object.create(null), {
    get(_, member) {
      if (!started) throw new Error(`${String(member)} is there only while tests run`)
      return Reflect.get(started, member)
    },
  })
}

export function useRig(options: RigOptions = {}): Rig {
  return useStarted(
    () => borrowRig(options),
    (rig) => rig.stop(),
  )
}

/** Deletes what a test left behind: the gateway's faults and all merchant data. */
export async function clearRig(rig: Rig): Promise<void> {
  await rig.control('DELETE', '/faults')
  await emptyTables(rig.database)
}

/** Two processes on one database, cleared after each test. */
export function useTwoServices(settings: Record<string, string>): { rig: Rig; other: Service } {
  const rig = useRig({ settings })
  const other = useStarted(
    () => startTestService(rig.database, rig.sandbox.url, { settings }),
    (service) => service.stop(),
  )
  afterEach(() => clearRig(rig))
  return { rig, other }
}

/** A signed-in person of each role, with every account. */
export function usePeople(rig: Pick<Rig, 'database'>): Record<Role, Visitor> {
  return useStarted(
    () => addVisitors(rig.database),
    async () => {},
  )
}

export function useRefundRig(options: RigOptions = {}): RefundRig {
  return useStarted(
    () => startRefundRig(options),
    (rig) => rig.stop(),
  )
}

/** A lab; whatever its tests make the service store can be said in Vietnamese. */
export function useRefundLab(options: RigOptions = {}): RefundLab {
  const lab = useLab(options)
  afterEach(() => expectSaidInVietnamese(lab.database))
  return lab
}

/** A lab in which no test finds rows of another. */
export function useFreshLab(options: RigOptions = {}): RefundLab {
  const lab = useLab(options)
  afterEach(async () => {
    try {
      await expectSaidInVietnamese(lab.database)
    } finally {
      await emptyTables(lab.database)
    }
  })
  return lab
}

function useLab(options: RigOptions): RefundLab {
  return useStarted(
    () => startRefundLab(options),
    (lab) => lab.stop(),
  )
}

/** A database for files that only store rows. */
export function useTestDatabase(): TestDatabase {
  return useStarted(borrowDatabase, (database) => database.release())
}

/** A database of the file's own, for what a borrowed one cannot take. */
export function useOwnDatabase(): TestDatabase {
  return useStarted(createTestDatabase, (database) => database.drop())
}
