import { z } from 'zod'
import { type Config, readConfig } from '../config/config.ts'
import { createBreakers } from '../gateway/breakers.ts'
import { createCardGateway } from '../gateway/cards.ts'
import { describeCode } from '../gateway/response-codes.ts'
import {
  describeAnswer,
  isAccepted,
  listVariants,
  tryQuery,
  type Variant,
} from '../gateway/try-query.ts'
import type { PaymentList } from '../gateway/types.ts'
import { isKnownStatus, isRecognised } from '../payments/view.ts'
import { formatSkew, MAX_CLOCK_SKEW_MS } from './check.ts'
import { checkHosts } from './check-hosts.ts'
import { command, UsageError } from './command.ts'
import { createReport, judge } from './diagnosis.ts'
import { diagnose } from './doctor.ts'
import { Merchant } from './values.ts'

/** Tries the settings of the gateway before going live. It never sends a REFUND. */
export const PROBE = command({
  name: 'probe',
  description: 'try the settings of the gateway with queries: what fits, and what would be refused',
  input: {
    transaction: z
      .string()
      .optional()
      .describe('a transaction that the gateway knows; its answer is read as a whole'),
    merchant: Merchant,
  },
  examples: `It sends signed queries (QUERY_PT), and reads one page of virtual cards where an access token is
set. It never sends a REFUND, and stores nothing.

Examples:
  cli probe                       with a transaction that the gateway cannot know
  cli probe --transaction 2611270001 --merchant DH2012`,
  async run(cli, { transaction, merchant }) {
    const report = createReport(cli)
    const config = readConfig(cli.env)
    const codes = config.accounts.map(({ merchantCode }) => merchantCode)
    const probed = codes.filter((code) => code === (merchant ?? code))
    if (probed.length === 0) {
      const known = `known accounts: ${codes.join(', ')}`
      throw new UsageError(`unknown merchant account ${merchant}; ${known}`)
    }
    await checkHosts(config, config.GATEWAY_TIMEOUT_MS, (found) => report.add(diagnose(found)))
    for (const code of probed) {
      const add: Add = (id, finding, action, severity) =>
        report.add({ id, ...judge(`${code}: ${finding}`, action, severity) })
      await probeQuery(config, code, transaction, add)
      await probeCards(config, code, add)
    }
    return report.end()
  },
})

/** Reports a finding. As in `judge`, one that needs no action is information. */
type Add = (id: string, finding: string, action?: string | false, severity?: 'error') => void

const AT_THE_HOST =
  'check GATEWAY_BASE_URL and GATEWAY_PAYGATE_PATH, and whether the gateway admits this address'

/** No gateway issues such an id. */
const UNKNOWN = 'probe-of-an-unknown-transaction'

/** In demo mode the gateway is the sandbox beside the service. */
function readBase({ GATEWAY_BASE_URL, SANDBOX_PORT }: Config): string {
  return GATEWAY_BASE_URL ?? `http://127.0.0.1:${SANDBOX_PORT}`
}

const describe = ({ prefix, encoding }: Variant) => `${encoding} with the prefix ${prefix}`

async function probeQuery(
  config: Config,
  merchantCode: string,
  transaction: string | undefined,
  add: Add,
): Promise<void> {
  const { GATEWAY_FIELD_PREFIX: prefix, GATEWAY_ENCODING: encoding, GATEWAY_TIMEOUT_MS } = config
  const tried = { baseUrl: readBase(config), merchantCode, transactionId: transaction ?? UNKNOWN }
  const ask = (variant: Variant, isSpoiled = false) => tryQuery(config, tried, variant, isSpoiled)
  const used = { prefix, encoding }
  const reply = await ask(used)
  if ('failure' in reply)
    return add('query', `no answer to QUERY_PT (${reply.failure})`, AT_THE_HOST, 'error')
  const { ms, aheadMs = 0, status, answer } = reply
  add(
    'round trip',
    `a query took ${ms} ms, of at most ${GATEWAY_TIMEOUT_MS} (GATEWAY_TIMEOUT_MS)`,
    ms > GATEWAY_TIMEOUT_MS / 4 && 'raise GATEWAY_TIMEOUT_MS to four times that',
  )
  // Signatures do not depend on the time, but orders and certificates do.
  add(
    'clock',
    `this machine is ${formatSkew(aheadMs)} the gateway`,
    Math.abs(aheadMs) > MAX_CLOCK_SKEW_MS && 'synchronise the clock of this machine (NTP)',
  )

  const spoiled = await ask(used, true)
  if (isAccepted(reply, spoiled)) {
    const takesAny = 'answer' in spoiled && spoiled.answer.kind === 'answered'
    const found = `the gateway accepts the signature, as ${describe(used)}`
    if (takesAny)
      add('signature', `${found}, and a wrong one as well`, "tell the gateway's operator")
    else add('signature', found)
    if (answer.kind === 'answered') return reportPayments(answer.value, add)
    const said = answer.kind === 'rejected' ? describeCode(answer.code, answer.message) : ''
    const of = transaction ?? 'a transaction that it cannot know'
    const action = transaction !== undefined && 'check the id and the account'
    return add('query', `the gateway answers ${said}, to the query of ${of}`, action, 'error')
  }
  const isAnswer = status >= 200 && status <= 299
  if (!isAnswer)
    add('query', `QUERY_PT was answered with HTTP status ${status}`, AT_THE_HOST, 'error')
  for (const variant of listVariants(used, reply)) {
    const other = await ask(variant)
    if ('failure' in other || !isAccepted(other, await ask(variant, true))) continue
    const finding = `the gateway does not take calls as ${describe(used)}, but as ${describe(variant)}`
    const action = `set GATEWAY_ENCODING=${variant.encoding} and GATEWAY_FIELD_PREFIX=${variant.prefix}`
    return add('signature', finding, action, 'error')
  }
  if (!isAnswer) return
  const said = answer.kind === 'unknown' ? answer.reason : describeAnswer(answer)
  const action =
    'check GATEWAY_SECRET and GATEWAY_MERCHANT_CODE (or MERCHANTS_FILE): no encoding and no prefix makes a difference'
  const finding = `the gateway answers a right signature as it answers a wrong one: ${said}`
  add('signature', finding, action, 'error')
}

function reportPayments({ payments, unreadable, rounded }: PaymentList, add: Add): void {
  if (payments.length + unreadable.length === 0) add('query', 'the transaction has no payment')
  for (const payment of payments) {
    const { id, status, amount, refundedAmount, paymentMethod } = payment
    const found = `payment ${id}: status ${status}, amount ${amount}, refundedAmount ${refundedAmount}, paymentMethod ${paymentMethod}`
    const odd = isKnownStatus(status) ? 'paymentMethod' : 'status'
    const action = `its ${odd} is not in the specification: such a payment is shown as unrecognised and cannot be refunded`
    add('payment', found, !isRecognised(payment) && action)
  }
  for (const { id, field, written, amount } of rounded) {
    const found = `payment ${id}: ${field} is written as ${written}, and read as ${amount}`
    add('payment', found, 'have the gateway send decimals, not binary fractions')
  }
  for (const { id, reason } of unreadable) {
    const found = `payment ${id ?? 'without an id'} would not be read: it ${reason}`
    add('payment', found, "show the answer to the gateway's operator", 'error')
  }
}

async function probeCards(config: Config, merchantCode: string, add: Add): Promise<void> {
  const { accounts, sharedToken } = config
  const account = accounts.find((one) => one.merchantCode === merchantCode)
  if (!account?.token && !sharedToken)
    return add('cards', 'no access token is set: virtual cards are not read')
  const cards = createCardGateway({
    config,
    baseUrl: readBase(config),
    breakers: createBreakers(),
    signal: new AbortController().signal,
    onCall: () => {},
  })
  try {
    const query = { pageIndex: String(config.GATEWAY_CARDS_FIRST_PAGE), pageSize: '1' }
    const outcome = await cards.readCards({ merchantCode, query })
    if (outcome.kind === 'answered')
      return add('cards', `a token and a list of cards were read (${outcome.owners.length})`)
    if (outcome.kind === 'refused' && outcome.status === 200) {
      const { GATEWAY_CARDS_SUCCESS_CODE: success } = config
      const found = `the list of cards has code ${outcome.code}, and success is ${success}`
      const action = `set GATEWAY_CARDS_SUCCESS_CODE=${outcome.code} if that is what the gateway calls a success`
      return add('cards', found, action, 'error')
    }
    const reason = 'reason' in outcome ? outcome.reason : outcome.kind
    const token = 'check GATEWAY_ACCESS_TOKEN, or GATEWAY_TOKEN_URL with its client id and secret'
    add('cards', `the list of cards could not be read: ${reason}`, token, 'error')
  } finally {
    await cards.close()
  }
}
