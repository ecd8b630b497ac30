import { Pool } from 'undici'
import { expect, it, onTestFinished } from 'vitest'
import { OTHER, writeMerchantsFile } from '../../support/api.ts'
import { measureNotifications, reportAttack, startFlood } from '../../support/attack.ts'
import { settingsFor, startServiceProcess } from '../../support/process.ts'
import { addKey, KEY, MERCHANT } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()

const ROWS = 200_000
const NOTIFICATIONS = 20_000
const MEASURED = 400
/** A key of the other account, which may only read. */
const READER = 'key-of-another-account-that-only-reads'

const ATTACKS = [
  { name: 'lists of a state that nothing is in', parallel: 150, path: '?state=refunded' },
  { name: 'timelines of one busy transaction', parallel: 40, path: '/BUSY/timeline?limit=1' },
]

async function fill(): Promise<void> {
  const { merchantCode } = OTHER
  const { sql } = database
  await sql`
    insert into transactions (merchant_code, transaction_id, state, final, first_seen_at)
    select ${merchantCode}, 'T' || n, 'paid', true, now() - n * interval '1 second'
    from generate_series(1, ${ROWS}::int) as n`
  await sql`
    insert into transactions (merchant_code, transaction_id, state, final, ipn_count)
    values (${merchantCode}, 'BUSY', 'paid', true, ${NOTIFICATIONS})`
  await sql`
    insert into ipn_events (merchant_code, fingerprint, kind, transaction_id, verdict, body, address, deliveries, first_received_at)
    select ${merchantCode}, sha256(n::text::bytea), 'payment', 'BUSY', 'verified', '{}',
      '127.0.0.1', 1, now() - n * interval '1 second' from generate_series(1, ${NOTIFICATIONS}::int) as n`
  await sql`
    insert into transactions (merchant_code, transaction_id) values (${MERCHANT.merchantCode}, 'T-MINE')`
  await addKey(database, READER, ['payments:read'], merchantCode)
}

/** Reads by id and in lists, one after the other, until `stop`; resolves with the statuses. */
function readOn(url: string) {
  const pool = new Pool(url, { connections: 1 })
  const headers = { authorization: `Bearer ${KEY}` }
  const paths = ['/T-MINE', '/T-MINE/timeline', `?merchantCode=${MERCHANT.merchantCode}&limit=10`]
  const statuses: number[] = []
  let stopped = false
  const done = (async () => {
    for (let n = 0; !stopped || n < paths.length; n += 1) {
      const path = `/v1/transactions${paths[n % paths.length]}`
      const answer = await pool.request({ path, method: 'GET', headers })
      await answer.body.dump()
      statuses.push(answer.statusCode)
    }
    await pool.destroy()
    return statuses
  })()
  return () => {
    stopped = true
    return done
  }
}

it('a key that only reads makes no other account wait', async () => {
  await fill()
  const file = writeMerchantsFile([MERCHANT, OTHER])
  onTestFinished(file.remove)
  const {
    GATEWAY_MERCHANT_CODE: _,
    GATEWAY_SECRET: __,
    ...settings
  } = settingsFor(database.url, 'http://127.0.0.1:9')
  const service = await startServiceProcess({ ...settings, ROLE: 'web', MERCHANTS_FILE: file.path })
  await measureNotifications(service.url, MEASURED)
  const idle = await measureNotifications(service.url, MEASURED)
  for (const { name, parallel, path } of ATTACKS) {
    const stop = await startFlood({
      url: service.url,
      paths: [`/v1/transactions${path}`],
      connections: parallel,
      localAddress: '127.0.0.9',
      headers: { authorization: `Bearer ${READER}` },
    })
    const stopReading = readOn(service.url)
    const attacked = await measureNotifications(service.url, MEASURED)
    const statuses = await stopReading()
    const answers = await stop()
    reportAttack(
      `${parallel} parallel ${name} (${answers} answers, ${statuses.length} own reads)`,
      idle,
      attacked,
    )
    expect(attacked.refused).toBe(0)
    expect(new Set(statuses)).toEqual(new Set([200]))
  }
}, 120_000)
