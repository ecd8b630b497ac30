import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { DEMO_CHAIN, EVERY_MERCHANT, hashKey, SCOPES } from './access/keys.ts'
import { addPerson } from './access/people.ts'
import {
  createSignInLink,
  formatSignInUrl,
  LINK_MINUTES,
  type SignInLink,
} from './access/sessions.ts'
import { DEMO_ADMIN } from './access/setting-keys.ts'
import { type Config, describeSandbox, findConsoleUrl, nameDemoKeyFile } from './config/config.ts'
import { makeFolder } from './platform/postgres/embedded-cluster.ts'
import { runInTransaction } from './platform/postgres/transaction.ts'
import type { Sql } from './platform/postgres/types.ts'
import { type Sandbox, startSandbox } from './sandbox/start.ts'
import type { Service } from './service.ts'
import { waitForTransaction } from './transactions/find-transaction.ts'
import { showTransaction } from './transactions/view.ts'

const SAMPLE_TIMEOUT_MS = 10_000

export function startDemoGateway(config: Config): Promise<Sandbox> {
  return startSandbox(describeSandbox(config))
}

/** The first start creates the key, in a file that only its owner can read. */
export function loadOrCreateEncryptionKey(dataDir: string): string {
  const file = nameDemoKeyFile(dataDir)
  makeFolder(dataDir)
  if (!existsSync(file)) writeFileSync(file, randomBytes(32).toString('base64'), { mode: 0o600 })
  return readFileSync(file, 'utf8')
}

export async function presentDemo(service: Service, sandbox: Sandbox | undefined): Promise<void> {
  const { ctx, url } = service
  const key = ctx.config.API_KEY ?? `ipn_demo_${randomBytes(24).toString('base64url')}`
  if (!ctx.config.API_KEY) await replaceDemoKey(ctx.db.sql, key)
  const sample =
    sandbox && ctx.config.ROLE === 'all' ? await playSamplePayment(service, sandbox) : undefined
  const auth = `-H 'Authorization: Bearer ${key}'`
  const lines = [
    'IPN processor, demo mode: everything runs on this machine, and no real money moves.',
    ...(sample?.story ?? []),
    '',
    `Service   ${url}   (API reference: ${url}/docs)`,
    ...(sandbox
      ? [`Sandbox   ${sandbox.url}   (simulates the gateway; open it in a browser)`]
      : []),
    ...(await inviteAdmin(service)),
    `API key   ${key}   (${ctx.config.API_KEY ? 'from the setting API_KEY' : 'new on every start'})`,
    '',
    'Try these commands in another terminal:',
    `  curl ${auth} ${url}/v1/transactions${sample ? `/${sample.transactionId}` : ''}`,
    ...(sandbox
      ? [
          `  curl ${auth} '${url}/v2/vc/virtual-cards?status=ACTIVED'`,
          `  curl -H 'Content-Type: application/json' -d '{"payments":[{"amount":"150000","paymentMethod":"ATM","status":"PROCESSING"}]}' ${sandbox.url}/sandbox/transactions`,
        ]
      : [
          `  curl ${auth} '${url}/v1/payments?limit=5'`,
          `  curl ${auth} '${url}/v1/events?limit=5'`,
        ]),
    '',
    'Stop with Ctrl-C.',
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
}

/** Replaces the text of the demo key, which is printed once and not stored. The key remains the same principal. */
export async function replaceDemoKey(sql: Sql, text: string): Promise<void> {
  await sql`
    insert into actors (id, kind, name, folded_name, hash, scopes, merchants, chain_id)
    values (${DEMO_CHAIN}, 'key', 'demo', 'demo', ${hashKey(text)}, ${[...SCOPES]}, ${[EVERY_MERCHANT]}, ${DEMO_CHAIN})
    on conflict (id) do update set hash = excluded.hash, scopes = excluded.scopes, ended_at = null, expires_at = null`
}

/** Ends the sessions and links of earlier runs. */
export async function inviteDemoAdmin(sql: Sql): Promise<SignInLink> {
  return await runInTransaction(sql, async (tx) => {
    await tx`update sessions set ended_at = now() where person_id = ${DEMO_ADMIN} and ended_at is null`
    const revived = await tx`update actors set ended_at = null where id = ${DEMO_ADMIN} returning 1`
    if (revived.length === 0) {
      const given = { id: DEMO_ADMIN, name: 'Demo admin', email: null, roles: ['admin'] as const }
      const { kind } = await addPerson(tx, { ...given, merchants: [EVERY_MERCHANT] })
      if (kind === 'taken') throw new Error('another person is called Demo admin')
    }
    return await createSignInLink(tx, DEMO_ADMIN)
  })
}

async function inviteAdmin({ ctx, url }: Service): Promise<string[]> {
  if (ctx.config.CONSOLE === 'off' || ctx.config.ROLE === 'worker') return []
  const link = await inviteDemoAdmin(ctx.db.sql)
  const console = formatSignInUrl(findConsoleUrl(ctx.config, new URL(url).port), link)
  return [
    `Console   ${console}`,
    `          (signs you in as an admin, once, within ${LINK_MINUTES} minutes; a restart makes a new link)`,
  ]
}

const Made = z.object({ transactionId: z.string() })

/** Plays one payment from the customer to the order system, over the same HTTP calls as in production. */
async function playSamplePayment({ ctx, url }: Service, sandbox: Sandbox) {
  sandbox.setIpnUrl(`${url}/ipn`)
  const { merchantCode } = ctx.config.accounts[0]
  const started = performance.now()
  const sample = [{ amount: '20000000', paymentMethod: 'QR', status: 'SUCCESS' }]
  const made = await fetch(`${sandbox.url}/sandbox/transactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ payments: sample }),
  })
  const { transactionId } = Made.parse(await made.json())
  const paid = await waitForTransaction(
    ctx,
    { merchants: [merchantCode], transactionId },
    ({ transaction }) => transaction.final,
    SAMPLE_TIMEOUT_MS,
    ctx.lifecycle.stopping,
  ).catch(() => undefined)
  const elapsedMs = performance.now() - started
  if (!paid?.transaction.final) {
    const late = `The sample payment ${transactionId} did not arrive in time; see the log above.`
    return { transactionId, story: ['', late] }
  }
  const { state, payments, currency } = showTransaction(paid)
  const ack = await ctx.metrics.ipnAck.get()
  const ackS = ack.values.find(({ metricName }) => metricName === 'ipn_ack_seconds_sum')?.value ?? 0
  const { referenceExamples: examples } = ctx
  examples.set('transactionId', transactionId)
  examples.set('virtualCardRequestId', `VC-${merchantCode}-0001`)
  const [payment] = payments
  for (const name of ['paymentId', 'setHold.id', 'releaseHold.id']) {
    if (payment) examples.set(name, payment.id)
  }
  const listed = payments.map(({ id, status, amount }) => `${id}, ${amount} ${currency}, ${status}`)
  return {
    transactionId,
    story: [
      '',
      `1. A customer paid at the sandbox gateway, which sent a notification for ${transactionId}.`,
      `2. The service stored and acknowledged the notification in ${(ackS * 1000).toFixed(1)} ms.`,
      '3. The service asked the gateway what really happened, with a signed QUERY_PT over HTTP.',
      `4. It stored the payment from the answer: ${listed.join('; ')}.`,
      `5. ${elapsedMs.toFixed(0)} ms after the customer paid, order systems could read the state "${state}".`,
    ],
  }
}
