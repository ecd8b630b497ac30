import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceDemoKey } from './access/keys.ts'
import { type Config, describeSandbox } from './config.ts'
import { type Sandbox, startSandbox } from './sandbox/server.ts'
import type { Service } from './service.ts'
import { findTransaction } from './transactions/find.ts'
import { showTransaction } from './transactions/view.ts'
import { writeWaitKey } from './transactions/wait.ts'

/** How long the sample payment may take (ms). */
const PLAY_WITHIN_MS = 10_000

/** The sandbox gateway as the demo's gateway, with the same account and signature rules as the service. */
export function startDemoGateway(config: Config): Promise<Sandbox> {
  return startSandbox(describeSandbox(config, config.accounts, config.sharedToken))
}

/** The demo's encryption key: made at the first start, readable by its owner only. */
export function keepEncryptionKey(dataDir: string): string {
  const file = join(dataDir, 'encryption-key')
  mkdirSync(dataDir, { recursive: true })
  if (!existsSync(file)) writeFileSync(file, randomBytes(32).toString('base64'), { mode: 0o600 })
  return readFileSync(file, 'utf8')
}

/** Makes this run's API key, plays one payment through, and tells a person what happened and what to try. */
export async function presentDemo(service: Service, sandbox: Sandbox | undefined): Promise<void> {
  const { ctx, url } = service
  const key = ctx.config.API_KEY ?? `ipn_demo_${randomBytes(24).toString('base64url')}`
  if (!ctx.config.API_KEY) await replaceDemoKey(ctx.sql, key)
  const played =
    sandbox && ctx.config.ROLE === 'all' ? await playPayment(service, sandbox) : undefined
  const auth = `-H 'Authorization: Bearer ${key}'`
  const lines = [
    'IPN processor, demo mode: everything runs on this machine, no money moves.',
    ...(played?.story ?? []),
    '',
    `Service   ${url}   (the API in a browser: ${url}/docs)`,
    ...(sandbox ? [`Sandbox   ${sandbox.url}   (plays the gateway; open it in a browser)`] : []),
    `API key   ${key}   (${ctx.config.API_KEY ? 'the setting API_KEY' : 'new at every start'})`,
    '',
    'Try, in another terminal:',
    `  curl ${auth} ${url}/v1/transactions${played ? `/${played.transactionId}` : ''}`,
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

/** One payment from the customer to the order system, over the same wires as in production. */
async function playPayment({ ctx, url }: Service, sandbox: Sandbox) {
  sandbox.setIpnUrl(`${url}/ipn`)
  const { merchantCode } = ctx.config.accounts[0]
  const transactionId = makeTransactionId(ctx.now())
  const settled = ctx.waiters.watch(writeWaitKey(merchantCode, transactionId))
  const started = performance.now()
  await fetch(`${sandbox.url}/sandbox/transactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      transactionId,
      orderId: 'DH1',
      payments: [{ amount: '20000000', paymentMethod: 'QR', status: 'SUCCESS' }],
    }),
  })
  if (!(await settled.until(PLAY_WITHIN_MS, ctx.stopping))) {
    const story = [
      '',
      `The sample payment ${transactionId} did not come through; see the log above.`,
    ]
    return { transactionId, story }
  }
  const doneMs = performance.now() - started
  const { state, payments, currency } = showTransaction(
    await findTransaction(ctx, [merchantCode], transactionId),
  )
  const ack = await ctx.metrics.ipnAck.get()
  const ackS = ack.values.find(({ metricName }) => metricName === 'ipn_ack_seconds_sum')?.value ?? 0
  const listed = payments.map(({ id, status, amount }) => `${id}, ${amount} ${currency}, ${status}`)
  return {
    transactionId,
    story: [
      '',
      `1. A customer paid at the sandbox gateway, which sent a notification about ${transactionId}.`,
      `2. The notification was stored and acknowledged in ${(ackS * 1000).toFixed(1)} ms.`,
      '3. The service asked the gateway what really happened: a signed QUERY_PT over HTTP.',
      `4. It stored the payment it was told of: ${listed.join('; ')}.`,
      `5. ${doneMs.toFixed(0)} ms after the customer paid, order systems read the state "${state}".`,
    ],
  }
}

/** In the form of the gateway's ids: the time, then letters. */
function makeTransactionId(now: Date): string {
  const time = now.toISOString().replace(/\D/g, '').slice(2, 14)
  const letters = [...randomBytes(6)].map((byte) => String.fromCharCode(65 + (byte % 26)))
  return time + letters.join('')
}
