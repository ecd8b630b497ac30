import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { addCheckpoint, verifyAudit } from '../../../src/access/audit-checkpoints.ts'
import { DEMO_ACCOUNT } from '../../../src/config/accounts.ts'
import { type Sandbox, startSandbox } from '../../../src/sandbox/start.ts'
import type { Service } from '../../../src/service.ts'
import { addPrincipal } from '../../support/approvals.ts'
import { ask, expectTaken } from '../../support/ask.ts'
import { runCli } from '../../support/cli.ts'
import { type BorrowedDatabase, borrowDatabase } from '../../support/database.ts'
import { KEY, startTestService } from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** The ids that the documentation uses. */
const TRANSACTION = '261121093303VBUBPM'
const PAYMENT = '354564703001'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

type Shown = { page: string; command: string }

/**
 * Every command in the shell blocks of the documentation, with its continued lines joined. The runbooks, which set
 * and name variables of the shell, are played as a whole by test/nightly/runbooks.
 */
function listCommands(): Shown[] {
  const docs = readdirSync(`${ROOT}docs`).filter((name) => name.endsWith('.md'))
  return ['README.md', ...docs.map((name) => `docs/${name}`)].flatMap((page) => {
    const text = readFileSync(ROOT + page, 'utf8')
    const blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block)
    return blocks.flatMap((block) => {
      if (/"\$|^(export|unset) /m.test(block)) return []
      const joined = block.replace(/\\\n\s*/g, '').replace(/,\n\s+(?=["{])/g, ', ')
      return joined.split('\n').map((command) => ({ page, command }))
    })
  })
}

const commands = listCommands()
const curls = commands.filter(({ command }) => command.startsWith('curl '))
const cli = commands.filter(({ command }) => /^npm run -s cli -- (keys|holds|audit)/.test(command))

/** Splits a command into words as a shell does. */
function splitWords(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? '',
  )
}

let database: BorrowedDatabase
let sandbox: Sandbox
let service: Service
beforeAll(async () => {
  database = await borrowDatabase()
  sandbox = await startSandbox({ accounts: [DEMO_ACCOUNT], refundMs: 50 })
  service = await startTestService(database, sandbox.url, {
    settings: {
      GATEWAY_MERCHANT_CODE: DEMO_ACCOUNT.merchantCode,
      GATEWAY_SECRET: DEMO_ACCOUNT.secret,
      GATEWAY_CLIENT_ID: 'DEMO',
      GATEWAY_CLIENT_SECRET: 'sandbox-DEMO',
      REFUND_APPROVAL_ABOVE: 'VND:19000000',
    },
  })
  sandbox.setIpnUrl(`${service.url}/ipn`)
  await fetch(`${sandbox.url}/sandbox/transactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      transactionId: TRANSACTION,
      orderId: 'DH1',
      payments: [{ id: PAYMENT, amount: '20000000', paymentMethod: 'QR', status: 'SUCCESS' }],
    }),
  })
  const isPaid = async () =>
    (await run(`curl ${service.url}/v1/payments/${PAYMENT}`)).status === 200
  await waitUntil(isPaid, { what: 'the payment of the documentation' })
})
afterAll(async () => {
  await service.stop()
  await sandbox.stop()
  await database.release()
})

/** Runs a curl command. Of a stream it reads the first bytes. */
async function run(command: string): Promise<{ status: number; text: string }> {
  const words = splitWords(command).slice(1)
  const headers = new Headers({ authorization: `Bearer ${KEY}` })
  let url = ''
  let method: string | undefined
  let body: string | undefined
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === '-N') continue
    if (word === '-X') method = words.shift()
    else if (word === '-d') body = words.shift()
    else if (word === '-H') {
      const [name = '', value = ''] = (words.shift() ?? '').split(/: (.*)/)
      headers.set(name, value)
    } else url = word
  }
  const sent = { method: method ?? (body === undefined ? 'GET' : 'POST'), headers }
  const response = await fetch(url, body === undefined ? sent : { ...sent, body })
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    return { status: response.status, text: await response.text() }
  }
  const reader = response.body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  await reader?.cancel()
  return { status: response.status, text: new TextDecoder().decode(value) }
}

const Created = z.object({
  transactionId: z.string(),
  payments: z.tuple([z.object({ id: z.string() })]).rest(z.unknown()),
})

/** What stands for the placeholders of a page, as its earlier commands returned it. */
type Placeholders = Map<string, string>

const openPage = (): Placeholders =>
  new Map([
    ['127.0.0.1:3000', new URL(service.url).host],
    ['127.0.0.1:4010', new URL(sandbox.url).host],
    ['$KEY', KEY],
    ['$TRANSACTION', TRANSACTION],
    ['$PAYMENT', PAYMENT],
  ])

const fill = (placeholders: Placeholders, command: string) =>
  [...placeholders].reduce((text, [name, value]) => text.replaceAll(name, value), command)

/** Waits until what a transaction shows matches. */
async function untilShown(transactionId = '', pattern = /./): Promise<void> {
  const isShown = async () => {
    const { status, text } = await run(`curl ${service.url}/v1/transactions/${transactionId}`)
    return status === 200 && pattern.test(text)
  }
  await waitUntil(isShown, { what: `${transactionId} to be shown as ${pattern}` })
}

const Answered = z.object({ id: z.string() })

async function learn(known: Placeholders, command: string, text: string): Promise<void> {
  if (command.includes('/sandbox/transactions')) {
    const { transactionId, payments } = Created.parse(JSON.parse(text))
    const [{ id }] = payments
    known.set('<transaction id>', transactionId)
    known.set('<payment id>', id).set('payments/<id>', `payments/${id}`)
    // A person who types the commands is slower than the notification.
    await untilShown(transactionId)
  } else if (command.includes('/oauth2/token')) {
    const { access_token } = z.object({ access_token: z.string() }).parse(JSON.parse(text))
    known.set('<token>', access_token)
  } else if (/\/(webhook-endpoints|refunds) /.test(command)) {
    const [, kind] = /\/(webhook-endpoints|refunds) /.exec(command) ?? []
    known.set(`${kind}/<id>`, `${kind}/${Answered.parse(JSON.parse(text)).id}`)
  }
}

/** A refund that waits for a person, as the page says before it decides one. */
async function putInReview(): Promise<void> {
  const isOver = async () => {
    const [row] = await database.sql`
      select count(*)::int as open from refunds where status not in ('succeeded', 'failed', 'needs_review')`
    return row?.open === 0
  }
  await waitUntil(isOver, { what: 'the refunds to end' })
  await database.sql`update refunds set status = 'needs_review', matched = false`
}

/** A refund that was never sent, as the page says before it cancels one. */
async function unsend(): Promise<void> {
  await putInReview()
  await database.sql`update transactions set due_at = null where lease_id is null`
  await database.sql`delete from ipn_events where kind = 'refund'`
  // No growth may be its own.
  await database.sql`update payments set refunded_at_first = refunded_amount`
  await database.sql`
    update refunds set status = 'pending', attempts = 0, due_at = now() + interval '1 hour'
    where payment_id = ${PAYMENT}`
}

/** @returns the id of an open discrepancy */
async function disagree(): Promise<string> {
  const [row] = await database.sql<{ id: number }[]>`
    insert into discrepancies (merchant_code, transaction_id, kind, ours, theirs)
    values (${DEMO_ACCOUNT.merchantCode}, ${TRANSACTION}, 'ipn_missing', 'a', 'b') returning id`
  return String(row?.id)
}

/** Requests a refund that awaits approval, as another principal than the one of the commands. */
async function requestLarge(): Promise<string> {
  const { key } = await addPrincipal(database, { merchantCode: DEMO_ACCOUNT.merchantCode })
  const body = {
    amount: '19500000',
    receiver: { accountName: 'B', accountNumber: '123456789', swiftCode: 'ASCBVNVX' },
  }
  const refund = await expectTaken(await ask({ url: service.url, key }, PAYMENT, body))
  expect(refund.status).toBe('awaiting_approval')
  return refund.id
}

/** A refund made at the portal before the payment was first seen, that waits for a person, as the refunds do not any more. */
async function putExternal(): Promise<string> {
  await database.sql`
    update refunds set status = 'succeeded', review = null, matched = true, due_at = null
    where payment_id = ${PAYMENT} and status <> 'failed'`
  const [row] = await database.sql<{ id: string }[]>`
    with seen as (
      update payments set refunded_amount = 10000, refunded_at_first = 10000
      where payment_id = ${PAYMENT} returning merchant_code, payment_id
    )
    insert into external_refunds (merchant_code, request_id, payment_id, amount, ipn_event_id)
    select merchant_code, 'portal-1', payment_id, 10000, 1 from seen returning id`
  return row?.id ?? ''
}

it('the documentation shows commands', () => {
  expect(curls.length).toBeGreaterThan(20)
  expect(cli.length).toBeGreaterThan(4)
})

const Portal = z.object({ requestId: z.string() })

const control = (method: string, path: string, body: object) =>
  fetch(`${sandbox.url}/sandbox${path}`, { method, body: JSON.stringify(body) })

/** Makes a refund at the sandbox's portal, of a payment that the service does not know. */
async function refundAtPortal(): Promise<string> {
  const payments = [{ id: 'P-PORTAL', amount: '9', paymentMethod: 'CC', status: 'SUCCESS' }]
  await control('POST', '/transactions', { payments, ipn: false })
  const refund = { amount: '1', ipn: false }
  const response = await control('POST', '/payments/P-PORTAL/portal-refund', refund)
  return Portal.parse(await response.json()).requestId
}

it('every curl command of the documentation works, in the order of its page', async () => {
  const pages = new Map<string, Placeholders>()
  for (const { page, command } of curls) {
    const placeholders = pages.get(page) ?? openPage()
    pages.set(page, placeholders)
    if (command.includes('/cancellation')) await unsend()
    if (command.includes('discrepancies/<id>')) {
      placeholders.set('discrepancies/<id>', `discrepancies/${await disagree()}`)
    }
    if (command.includes('/resolution')) await putInReview()
    if (command.includes('/surplus-refund')) {
      await untilShown(placeholders.get('<transaction id>'), /"duplicatePayment":true/)
    }
    if (command.includes('/approval')) {
      placeholders.set('refunds/<id>', `refunds/${await requestLarge()}`)
    }
    if (command.includes('refunds/<request id>')) {
      placeholders.set('<request id>', await refundAtPortal())
    }
    // Read at once: the payment is made to succeed by the command after it.
    const external = command.includes('/external-refunds/<id>') ? await putExternal() : ''
    const named = command.replace('/external-refunds/<id>', `/external-refunds/${external}`)
    const filled = fill(placeholders, named).replace(/wait=60'/, "wait=0'")
    const { status, text } = await run(filled)
    expect({ page, command: filled, status, text }).toMatchObject({
      status: expect.toSatisfy((code: number) => code >= 200 && code < 300),
    })
    expect(filled).not.toMatch(/<[a-z ]+>|\$[A-Z]/)
    await learn(placeholders, command, text)
    if (command.includes('/refund-mode')) await control('PUT', '/refund-mode', {})
  }
}, 60_000)

/** Signs what the commands before wrote, as if it were older. @returns the newest checkpoint as the log has it */
async function readCheckpoint(): Promise<string> {
  const { ctx } = service
  await ctx.db.sql`update audit_entries set at = at - interval '11 minutes'`
  await addCheckpoint(ctx)
  return (await verifyAudit(ctx.db.sql, ctx.encryption)).last ?? ''
}

it('every command for keys and the audit works, in the order of its page', async () => {
  const { DATA_ENCRYPTION_KEY = '' } = service.ctx.config
  const env = { DATABASE_URL: database.url, DATA_ENCRYPTION_KEY }
  let id = ''
  for (const { command } of cli) {
    const noted = command.includes('<checkpoint') ? await readCheckpoint() : ''
    const filled = command.replace(/<id[^>]*>/, () => id).replace(/<checkpoint[^>]*>/, noted)
    const [, , , , , ...args] = splitWords(filled)
    const { code, out, err } = await runCli(args, env)
    const talk = command.includes('audit verify') ? expect.stringContaining('is intact') : ''
    expect({ command, code, err, out }).toMatchObject({ code: 0, err: talk })
    id = /key ([0-9a-f-]{36})/.exec(out)?.[1] ?? id
  }
})
