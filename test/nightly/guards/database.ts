import { type Guard, guards } from './guard.ts'

export const DATABASE: readonly Guard[] = [
  {
    file: 'src/db/migration-state.ts',
    text: "code === '42703'",
    mutation: "code === '42704'",
    test: 'test/api/db/migrate.test.ts',
    claim: 'refuses a database whose table of that name is of another program, in one line',
    control:
      'processes that start together migrate one after another, and each migration is applied once',
  },
  {
    file: 'src/db/migrate.ts',
    text: '  await runInTransaction(session.sql, async (tx) => {\n    await tx.unsafe(`set local',
    mutation:
      '  await runInTransaction(session.sql, async (tx) => {\n    await tx`commit`\n    await tx.unsafe(`set local',
    test: 'test/races/migrate-beside-traffic.test.ts',
    claim:
      'each migration commits for itself: a failed one leaves those before it, and the next run applies the rest',
    control:
      'a current database is migrated without any lock: a process starts while another one migrates',
  },
  {
    file: 'src/platform/concurrency/batcher.ts',
    text: "      else reject(result?.reason ?? new Error('the run returned no result for this item'))",
    mutation: '      else resolve(result?.reason ?? reject)',
    test: 'test/unit/platform/concurrency/batcher.test.ts',
    claim: 'a batcher gives each item its own result, and an error of the run to all of them',
    control:
      'a batcher starts with the turn of the event loop when idle, and items added meanwhile share the next run',
  },
  {
    file: 'src/platform/concurrency/worker-loop.ts',
    text: '    await Promise.allSettled(running)\n',
    mutation: '',
    test: 'test/api/platform/concurrency/worker-loop.test.ts',
    claim: 'stops at once while it sleeps, begins no more rounds, and waits for running work',
    control: 'a wake during a round is not lost: another round follows',
  },
  {
    file: 'src/platform/postgres/embedded.ts',
    text: 'performance.now() - readySince >= IN_USE_AFTER_MS',
    mutation: 'performance.now() - readySince >= IN_USE_AFTER_MS * 1e6',
    test: 'test/process/postgres/embedded/start.test.ts',
    claim: 'the embedded database refuses a folder whose server runs, and names that process',
    control: 'the embedded database reports why it does not start, and leaves the folder free',
  },
  {
    file: 'src/platform/postgres/embedded.ts',
    text: 'running !== undefined || TRANSIENT.test(failure)',
    mutation: 'TRANSIENT.test(failure)',
    test: 'test/process/postgres/embedded/start.test.ts',
    claim:
      'the embedded database refuses a second start in the same process too, and frees the folder when stopped',
    control: 'the embedded database reports why it does not start, and leaves the folder free',
  },
  {
    file: 'src/platform/concurrency/batcher.ts',
    text: ' || runs.size >= MAX_CONCURRENT_RUNS',
    mutation: ' || runs.size > MAX_CONCURRENT_RUNS',
    test: 'test/unit/platform/concurrency/batcher.test.ts',
    claim: 'a batcher a slow run does not block the next one, and at most four overlap',
    control: 'a batcher is drained when every item added has its result',
  },
  ...guards({ test: 'test/process/cells.test.ts', control: 'refuses the keys of another schema' }, [
    {
      file: 'src/db/names.ts',
      text: '`${number}::bigint # hashtextextended(current_schema(), 0)`',
      mutation: '`${number}::bigint`',
      claim: 'does not wait for PUBLISHING_LOCK of another schema',
    },
    {
      file: 'src/platform/postgres/notify.ts',
      text: "else current_schema() || '.' || channel end",
      mutation: 'else channel end',
      claim: 'does not wake the listeners of another schema',
    },
  ]),
]
