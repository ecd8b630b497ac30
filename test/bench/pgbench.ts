import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { storeArrivals } from '../../src/ipn/store-arrivals.ts'
import type { Arrival } from '../../src/ipn/types.ts'
import type { BenchDatabase } from './database.ts'
import { ACCOUNT, makeNotification } from './notifications.ts'

const run = promisify(execFile)

/**
 * The intake's own statement by pgbench, one notification each, without any HTTP: transactions a second
 * in three rounds. Undefined where there is no pgbench.
 */
export async function measureWithPgbench(
  { url, bindir }: BenchDatabase,
  clients: number,
): Promise<number[] | undefined> {
  if (!bindir) return undefined
  const folder = await mkdtemp(join(tmpdir(), 'ipn-bench-'))
  try {
    const script = join(folder, 'intake.sql')
    await writeFile(script, await writeScript(url))
    const rates: number[] = []
    for (let round = 0; round < 3; round += 1) {
      const args = [
        '-n',
        '-f',
        script,
        '-M',
        'simple',
        '-c',
        String(clients),
        '-j',
        '2',
        '-T',
        '4',
        url,
      ]
      const { stdout } = await run(join(bindir, 'pgbench'), args)
      rates.push(Number(/tps = ([\d.]+)/.exec(stdout)?.[1]))
    }
    return rates
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The statement as the driver sends it, with the parameters written in and a random id in each. */
async function writeScript(url: string): Promise<string> {
  let statement = ''
  let parameters: unknown[] = []
  const sql = postgres(url, {
    max: 1,
    types: { int8: { to: 20, from: [20], serialize: String, parse: Number } },
    debug: (_connection, query, given) => {
      if (!query.includes('ipn_events')) return
      statement = query
      parameters = given
    },
  })
  const { transactionId, body } = makeNotification()
  const arrival: Arrival = {
    merchantCode: ACCOUNT.merchantCode,
    fingerprint: '07'.repeat(32),
    signedKey: undefined,
    published: true,
    hint: false,
    recut: false,
    notification: {
      kind: 'payment',
      merchantCode: ACCOUNT.merchantCode,
      transactionId,
      orderId: `O${transactionId}`,
      merchantTxnId: undefined,
      currency: 'VND',
      paymentId: undefined,
      amount: undefined,
      code: undefined,
    },
    verdict: 'verified',
    body,
    contentType: 'application/json',
    address: '127.0.0.1',
    headers: {},
  }
  await storeArrivals(sql, [arrival])
  await sql.end()
  const written = statement.replaceAll(/\$(\d+)/g, (_, n: string) => {
    const literal = writeLiteral(parameters[Number(n) - 1])
      .replaceAll(transactionId, `${transactionId}-:id`)
      .replaceAll('07'.repeat(32), `' || lpad(to_hex(:id::bigint), 64, '0') || '`)
    return `(${literal})`
  })
  return `\\set id random(1, 1000000000000)\n${written.replaceAll('\n', ' ')};\n`
}

function writeLiteral(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return `array[${value.map(writeLiteral).join(', ')}]`
  return typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`
}
