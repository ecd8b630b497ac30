import { build } from './build.ts'
import { startBenchDatabase } from './database.ts'
import { fill } from './fill.ts'
import { ACCOUNT, makeNotification } from './notifications.ts'
import { measureCpuMs } from './processes.ts'
import { sleepWorker, startStage, wakeWorker } from './stage.ts'

await build()
const database = await startBenchDatabase()
const stage = await startStage(database)
try {
  await fill(database.sql, 0, 10000)
  const { sql } = database
  for (let r = 0; r < 6; r++) {
    await sql`vacuum analyze transactions`
    const ids = Array.from({ length: 2000 }, () => makeNotification().transactionId)
    await sql`insert into transactions (merchant_code, transaction_id, due_at) select ${ACCOUNT.merchantCode}, id, now() from unnest(${ids}::text[]) as id`
    const before = await measureCpuMs(stage.slowWorker.child, sql)
    const t0 = performance.now()
    wakeWorker(stage.slowWorker)
    for (;;) {
      const [row] =
        await sql`select exists (select from transactions where due_at is not null) as left`
      if (!row?.left) break
      await new Promise((r) => setTimeout(r, 10))
    }
    const s = (performance.now() - t0) / 1000
    const after = await measureCpuMs(stage.slowWorker.child, sql)
    sleepWorker(stage.slowWorker)
    console.log(
      'sync',
      (2000 / s).toFixed(0),
      '/s own ms',
      ((after.own - before.own) / 2000).toFixed(2),
      'pg ms',
      ((after.database - before.database) / 2000).toFixed(2),
    )
  }
} finally {
  await stage.stop()
  await database.stop()
}
process.exit(0)
