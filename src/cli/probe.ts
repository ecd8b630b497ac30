import type { Command } from 'commander'
import { type Config, readConfig } from '../config/config.ts'
import { createBreakers } from '../gateway/breakers.ts'
import { createCardGateway } from '../gateway/cards.ts'
import { describeCode } from '../gateway/response-codes.ts'
import {
  describeAnswer,
  isAccepted,
  listVariants,
  type Reply,
  tryQuery,
  type Variant,
} from '../gateway/try-query.ts'
import type { PaymentList } from '../gateway/types.ts'
import { isKnownStatus, isRecognised } from '../payments/view.ts'
import { checkHosts } from './check-hosts.ts'
import type { Diagnosis } from './diagnosis.ts'
import { diagnose, present, summarize } from './doctor.ts'
import { type Json, jsonOption, UsageError } from './options.ts'
import type { Cli } from './print.ts'

type ProbeOptions = Json & { transaction?: string; merchant?: string }

const EXAMPLES = `
It sends signed queries (QUERY_PT), and reads one page of virtual cards where an access token is
set. It never sends a REFUND, and stores nothing.

Examples:
  npm run -s cli -- probe                       with a transaction that the gateway cannot know
  npm run -s cli -- probe --transaction 2611270001 --merchant DH2012`

/** Adds `probe`, which tries the settings of the gateway before going live. Exit code 1: something is an error. */
export function addProbeCommand(program: Command, { env, emit, print, setExitCode }: Cli): void {
  program
    .command('probe')
    .description(
      'try the settings of the gateway with queries: what fits, and what would be refused',
    )
    .option(
      '--transaction <id>',
      'a transaction that the gateway knows; its answer is read as a whole',
    )
    .option('--merchant <code>', 'only this merchant account')
    .addOption(jsonOption())
    .addHelpText('after', EXAMPLES)
    .action(async ({ json, transaction, merchant }: ProbeOptions) => {
      const findings: Diagnosis[] = []
      const add = (one: Diagnosis) => {
        findings.push(one)
        if (!json) print(present(one))
      }
      const config = readConfig(env)
      const codes = config.accounts.map(({ merchantCode }) => merchantCode)
      if (merchant !== undefined && !codes.includes(merchant)) {
        throw new UsageError(
          `unknown merchant account ${merchant}; known accounts: ${codes.join(', ')}`,
        )
      }
      await checkHosts(config, config.GATEWAY_TIMEOUT_MS, (name, status, detail, expires) =>
        add(diagnose({ name, status, detail, expires })),
      )
      for (const code of merchant === undefined ? codes : [merchant]) {
        await probeAccount(config, code, transaction, add)
      }
      const ok = findings.every(({ severity }) => severity !== 'error')
      if (!ok) setExitCode(1)
      if (json) emit(json, { ok, findings }, '')
      else print(summarize(findings))
    })
}

type Add = (id: string, severity: Diagnosis['severity'], finding: string, action?: string) => void

async function probeAccount(
  config: Config,
  merchantCode: string,
  transaction: string | undefined,
  report: (one: Diagnosis) => void,
): Promise<void> {
  const add: Add = (id, severity, finding, action) =>
    report({ id, severity, finding: `${merchantCode}: ${finding}`, action: action ?? null })
  const tried = { baseUrl: readBase(config), merchantCode, transactionId: transaction ?? UNKNOWN }
  const ask = (variant: Variant, isSpoiled = false) => tryQuery(config, tried, variant, isSpoiled)
  const { GATEWAY_FIELD_PREFIX: prefix, GATEWAY_ENCODING: encoding } = config
  const reply = await ask({ prefix, encoding })
  if ('failure' in reply) {
    add('query', 'error', `no answer to QUERY_PT (${reply.failure})`, AT_THE_HOST)
  } else {
    reportTimes(config, reply, add)
    await reportQuery({ prefix, encoding }, transaction, reply, ask, add)
  }
  await probeCards(config, merchantCode, add)
}

const AT_THE_HOST =
  'check GATEWAY_BASE_URL and GATEWAY_PAYGATE_PATH, and whether the gateway admits this address'

/** An id that no gateway gives: printable, and marked as what it is. */
const UNKNOWN = 'probe-of-an-unknown-transaction'

/** In demo mode the gateway is the sandbox beside the service. */
function readBase({ GATEWAY_BASE_URL, SANDBOX_PORT }: Config): string {
  return GATEWAY_BASE_URL ?? `http://127.0.0.1:${SANDBOX_PORT}`
}

/** Signatures have no time, but orders and certificates do (ms). */
const MAX_SKEW_MS = 30_000

function reportTimes({ GATEWAY_TIMEOUT_MS }: Config, { ms, aheadMs }: Reply, add: Add): void {
  const found = `a query took ${ms} ms, of at most ${GATEWAY_TIMEOUT_MS} (GATEWAY_TIMEOUT_MS)`
  if (ms <= GATEWAY_TIMEOUT_MS / 4) add('round trip', 'info', found)
  else add('round trip', 'warning', found, 'raise GATEWAY_TIMEOUT_MS to four times that')
  if (aheadMs === undefined) return
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1)
  const skew = `this machine is ${seconds} s ${aheadMs < 0 ? 'behind' : 'ahead of'} the gateway`
  if (Math.abs(aheadMs) <= MAX_SKEW_MS) add('clock', 'info', skew)
  else add('clock', 'warning', skew, 'synchronise the clock of this machine (NTP)')
}

async function reportQuery(
  used: Variant,
  transaction: string | undefined,
  reply: Reply,
  ask: (variant: Variant, isSpoiled?: boolean) => Promise<Reply | { failure: string }>,
  add: Add,
): Promise<void> {
  const { status, answer } = reply
  const spoiled = await ask(used, true)
  if (isAccepted(reply, spoiled)) {
    const isChecked = 'failure' in spoiled || spoiled.answer.kind !== 'answered'
    const found = `the gateway accepts the signature, as ${describe(used)}`
    if (isChecked) add('signature', 'info', found)
    else
      add(
        'signature',
        'warning',
        `${found}, and a wrong one as well`,
        "tell the gateway's operator",
      )
    if (answer.kind === 'answered') return reportPayments(answer.value, add)
    if (answer.kind === 'rejected') return reportRejected(transaction, answer, add)
  }
  if (status < 200 || status > 299) {
    add('query', 'error', `QUERY_PT was answered with HTTP status ${status}`, AT_THE_HOST)
  }
  for (const variant of listVariants(used, reply)) {
    const other = await ask(variant)
    if ('failure' in other || !isAccepted(other, await ask(variant, true))) continue
    const action = `set GATEWAY_ENCODING=${variant.encoding} and GATEWAY_FIELD_PREFIX=${variant.prefix}`
    const finding = `the gateway does not take calls as ${describe(used)}, but as ${describe(variant)}`
    return add('signature', 'error', finding, action)
  }
  if (status < 200 || status > 299) return
  const said = answer.kind === 'invalid' ? answer.reason : describeAnswer(answer)
  const action =
    'check GATEWAY_SECRET and GATEWAY_MERCHANT_CODE (or MERCHANTS_FILE): no encoding and no prefix makes a difference'
  const finding = `the gateway answers a right signature as it answers a wrong one: ${said}`
  add('signature', 'error', finding, action)
}

const describe = ({ prefix, encoding }: Variant) => `${encoding} with the prefix ${prefix}`

function reportRejected(
  transaction: string | undefined,
  { code, message }: { code: string; message: string },
  add: Add,
): void {
  const found = `the gateway answers ${describeCode(code, message)}, to the query of`
  if (transaction === undefined) add('query', 'info', `${found} a transaction that it cannot know`)
  else add('query', 'error', `${found} ${transaction}`, 'check the id and the account')
}

function reportPayments({ payments, unreadable, rounded }: PaymentList, add: Add): void {
  if (payments.length + unreadable.length === 0)
    add('query', 'info', 'the transaction has no payment')
  for (const payment of payments) {
    const { id, status, amount, refundedAmount, paymentMethod } = payment
    const found = `payment ${id}: status ${status}, amount ${amount}, refundedAmount ${refundedAmount}, paymentMethod ${paymentMethod}`
    const odd = isKnownStatus(status) ? 'paymentMethod' : 'status'
    if (isRecognised(payment)) add('payment', 'info', found)
    else add('payment', 'warning', `${found}; its ${odd} is not in the specification`, NOT_REFUNDED)
  }
  for (const { id, field, written, amount } of rounded) {
    const found = `payment ${id}: ${field} is written as ${written}, and read as ${amount}`
    add('payment', 'warning', found, 'have the gateway send decimals, not binary fractions')
  }
  for (const { id, reason } of unreadable) {
    const found = `payment ${id ?? 'without an id'} would not be read: it ${reason}`
    add('payment', 'error', found, "show the answer to the gateway's operator")
  }
}

const NOT_REFUNDED = 'such a payment is shown as unrecognised and cannot be refunded'

async function probeCards(config: Config, merchantCode: string, add: Add): Promise<void> {
  const { accounts, sharedToken, GATEWAY_CARDS_SUCCESS_CODE: successCode } = config
  const account = accounts.find((one) => one.merchantCode === merchantCode)
  if (!account?.token && !sharedToken) {
    return add('cards', 'info', 'no access token is set: virtual cards are not read')
  }
  const cards = createCardGateway({
    baseUrl: readBase(config),
    prefix: config.GATEWAY_FIELD_PREFIX,
    timeoutMs: config.GATEWAY_TIMEOUT_MS,
    maxConcurrency: 1,
    ...{ accounts, sharedToken, successCode },
    notFoundCodes: config.GATEWAY_CARDS_NOT_FOUND_CODES,
    breakers: createBreakers(),
    signal: new AbortController().signal,
    onCall: () => {},
  })
  try {
    const page = { pageIndex: String(config.GATEWAY_CARDS_FIRST_PAGE), pageSize: '1' }
    const outcome = await cards.readCards({ merchantCode, query: page })
    if (outcome.kind === 'answered') {
      return add(
        'cards',
        'info',
        `a token and a list of cards were read (${outcome.owners.length})`,
      )
    }
    if (outcome.kind === 'refused' && outcome.status === 200) {
      const found = `the list of cards has code ${outcome.code}, and success is ${successCode}`
      const action = `set GATEWAY_CARDS_SUCCESS_CODE=${outcome.code} if that is what the gateway calls a success`
      return add('cards', 'error', found, action)
    }
    const reason = 'reason' in outcome ? outcome.reason : outcome.kind
    const token = 'check GATEWAY_ACCESS_TOKEN, or GATEWAY_TOKEN_URL with its client id and secret'
    add('cards', 'error', `the list of cards could not be read: ${reason}`, token)
  } finally {
    await cards.close()
  }
}
