import type { Child } from 'hono/jsx'
import { compareAmounts, subtractAmount } from '../money.ts'
import { Card, type Column, formatTime, Table } from '../platform/html/components.tsx'
import type { SandboxCard } from './input.ts'
import type {
  JournalEntry,
  SandboxPayment,
  SandboxRefund,
  SandboxState,
  SandboxTransaction,
} from './state.ts'

const MAX_ROWS = 20
const NONE = <p class="soft">None yet.</p>

/** Shows what the gateway holds and was asked, the newest first. Cards are masked. */
export function Tables({ state: { merchants, journal } }: { state: SandboxState }) {
  const all = [...merchants.values()]
  const transactions = all.flatMap((one) => [...one.transactions.values()])
  const payments = all.flatMap((one) => [...one.payments.values()])
  const refunds = all.flatMap((one) => [...one.refunds.values()].flat())
  const cards = all.flatMap((one) => [...one.cards.values()])
  const madeAt = (one: SandboxTransaction | SandboxCard) => one.createdAt
  return (
    <>
      <Records title="Transactions" columns={TRANSACTIONS} all={sort(transactions, madeAt)} />
      <Records
        title="Payments"
        columns={PAYMENTS}
        all={sort(payments, (one) => madeAt(one.transaction))}
      />
      <Records title="Refunds" columns={REFUNDS} all={sort(refunds, (one) => one.acceptedAt)} />
      <Records title="Journal" columns={JOURNAL} all={journal} />
      <Records title="Virtual cards" columns={CARDS} all={sort(cards, madeAt)} />
    </>
  )
}

function sort<Row>(all: readonly Row[], readTime: (row: Row) => string): Row[] {
  return all.toSorted((a, b) => Date.parse(readTime(a)) - Date.parse(readTime(b)))
}

function Records<Row>(props: {
  title: string
  columns: readonly Column<Row>[]
  all: readonly Row[]
}) {
  const { title, columns, all } = props
  if (all.length === 0) return <Card title={title}>{NONE}</Card>
  const rows = all.slice(-MAX_ROWS).reverse()
  const note = all.length > MAX_ROWS ? `newest ${MAX_ROWS} of ${all.length}` : String(all.length)
  return (
    <Card title={title} note={note}>
      <Table caption={title} columns={columns} rows={rows} />
    </Card>
  )
}

const TRANSACTIONS: readonly Column<SandboxTransaction>[] = [
  { title: 'created', cell: (one) => formatTime(one.createdAt) },
  { title: 'id', cell: (one) => one.transactionId },
  { title: 'merchant', cell: (one) => one.merchant.merchantCode },
  { title: 'order', cell: (one) => one.orderId },
  { title: 'payments', cell: (one) => one.payments.length },
  actions((one) => {
    const to = locate(`transactions/${encodeURIComponent(one.transactionId)}/ipn`, one)
    return <Button label="Notify again" to={to} fields={{ copies: '1' }} />
  }),
]

const PAYMENTS: readonly Column<SandboxPayment>[] = [
  { title: 'id', cell: (one) => one.id },
  { title: 'transaction', cell: (one) => one.transaction.transactionId },
  { title: 'order', cell: (one) => one.transaction.orderId },
  { title: 'amount', cell: (one) => `${one.amount} ${one.transaction.currency}` },
  { title: 'refunded', cell: (one) => one.refundedAmount },
  { title: 'method', cell: (one) => one.paymentMethod },
  { title: 'status', cell: (one) => <Status text={one.status} /> },
  actions(({ id, status, amount, refundedAmount, transaction }) => {
    const to = `payments/${encodeURIComponent(id)}`
    const left = subtractAmount(amount, refundedAmount)
    if (status === 'SUCCESS' && compareAmounts(left, '0') > 0) {
      return <Button label="Refund" to={locate(`${to}/portal-refund`, transaction)} amount={left} />
    }
    if (status !== 'PROCESSING') return null
    const change = `${locate(to, transaction)}&ipn=true&method=PATCH`
    return (
      <>
        <Button label="Succeed" to={change} fields={{ status: 'SUCCESS' }} />
        <Button label="Fail" to={change} fields={{ status: 'FAILED' }} />
      </>
    )
  }),
]

const REFUNDS: readonly Column<SandboxRefund>[] = [
  { title: 'accepted', cell: (one) => formatTime(one.acceptedAt) },
  { title: 'request id', cell: (one) => one.requestId },
  { title: 'payment', cell: (one) => one.payment.id },
  { title: 'amount', cell: (one) => `${one.amount} ${one.payment.transaction.currency}` },
  { title: 'status', cell: (one) => <Status text={one.status} /> },
  actions(({ requestId, status, payment }) => {
    if (status !== 'accepted') return null
    const to = locate(`refunds/${encodeURIComponent(requestId)}/settle`, payment.transaction)
    return (
      <>
        <Button label="Settle" to={to} fields={{ outcome: 'success' }} />
        <Button label="Fail" to={to} fields={{ outcome: 'failure' }} />
      </>
    )
  }),
]

const CARDS: readonly Column<SandboxCard>[] = [
  { title: 'created', cell: (one) => formatTime(one.createdAt) },
  { title: 'id', cell: (one) => one.virtualCardRequestId },
  { title: 'number', cell: (one) => one.cardData.cardNumber },
  { title: 'brand', cell: (one) => String(one.cardData.cardBrand) },
  {
    title: 'limit',
    cell: ({ cardPolicy }) => `${cardPolicy.cardLimit} ${cardPolicy.cardCurrency}`,
  },
  { title: 'status', cell: (one) => one.status },
]

const JOURNAL: readonly Column<JournalEntry>[] = [
  { title: 'time', cell: (one) => formatTime(one.at) },
  {
    title: 'action',
    cell: ({ command, operation, attempt }) =>
      [command, operation, attempt && `attempt ${attempt}`].filter(Boolean).join(', '),
  },
  {
    title: 'subject',
    cell: ({ virtualCardRequestId, transactionId, paymentId, clientId, query }) =>
      virtualCardRequestId ??
      transactionId ??
      paymentId ??
      clientId ??
      new URLSearchParams(query).toString(),
  },
  { title: 'outcome', cell: (one) => <Status text={describeOutcome(one)} /> },
]

function describeOutcome({ outcome, status, code, respcode }: JournalEntry): string {
  const details = [
    typeof status === 'number' && `HTTP ${status}`,
    typeof code === 'number' && `code ${code}`,
    typeof respcode === 'number' && `respcode ${respcode}`,
  ]
  return [outcome, ...details].filter(Boolean).join(', ')
}

const GOOD = /^(SUCCESS|succeeded|acknowledged.*|(answered|delay), (HTTP 200|code 0\b).*)$/
const OPEN = /^(PROCESSING|accepted|received|sending|delay)$/

function Status({ text }: { text: string }) {
  const tone = GOOD.test(text) ? 'good' : OPEN.test(text) ? 'soft' : 'bad'
  return <span class={tone}>{text}</span>
}

function actions<Row>(cell: (row: Row) => Child): Column<Row> {
  return { title: 'Actions', kind: 'actions', cell }
}

function locate(path: string, { merchant }: Pick<SandboxTransaction, 'merchant'>): string {
  return `/sandbox/${path}?${new URLSearchParams({ merchantCode: merchant.merchantCode })}`
}

/** A form with one button and hidden fields; only an amount can be changed. */
export function Button(props: {
  label: string
  to: string
  fields?: Readonly<Record<string, string>>
  amount?: string
}) {
  const { label, to, fields = {}, amount } = props
  return (
    <form method="post" action={to}>
      {Object.entries(fields).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {amount && <input name="amount" value={amount} size={8} aria-label="Amount to refund" />}
      <button type="submit">{label}</button>
    </form>
  )
}
