import { Card, DataTable, Facts, Notice } from '../../platform/html/components.tsx'
import { Document } from '../../platform/html/document.tsx'
import { makeDefaultClient } from '../cards/tokens.ts'
import type { SandboxState } from '../state.ts'
import { describeNotification, type StyledText } from './describe-entry.ts'
import { listTables, type PageCell, type PageTable } from './list-tables.ts'
import { Actions, Faults, Select } from './render-action.tsx'

export const METHODS = ['QR', 'ATM', 'CC'] as const
export const STATUSES = ['SUCCESS', 'PROCESSING', 'FAILED'] as const

/**
 * What the page shows beside its records: the transaction that the form made, what a button did, or an error with what
 * was entered; and whether it stays as it is (`still`).
 */
export type PageView = {
  made?: string | undefined
  done?: string | undefined
  error?: string
  amount?: string
  orderId?: string
  still?: boolean
}

/** How often the page shows what has happened since (s). */
const REFRESH_S = 5

/** Renders the start page. All values are escaped. */
export function renderPage(state: SandboxState, view: PageView) {
  const made = view.made === undefined ? undefined : describeMade(state, view.made)
  const refresh = made?.isOver === false ? '1' : `${REFRESH_S};url=/`
  return (
    <Document
      language="en"
      title="Sandbox gateway"
      styles={['/style.css']}
      refresh={view.still ? undefined : refresh}
    >
      <main>
        <h1>Sandbox gateway</h1>
        <p class="soft">
          A simulated payment gateway. No money moves, and all data is lost when it stops.
        </p>
        <nav>
          <ServiceLinks ipnUrl={state.ipnUrl} />
          {view.still ? (
            <a href="/">Refresh every {REFRESH_S} s</a>
          ) : (
            <>
              <a href="/?still">Stop refreshing</a>, to fill in a form
            </>
          )}
        </nav>
        <Card title="Make a payment">
          {(made?.notices ?? []).map(({ tone, text }) => (
            <Notice tone={tone}>{text}</Notice>
          ))}
          {view.done === undefined ? null : <Notice tone="good">{view.done}</Notice>}
          {view.error === undefined ? null : <Notice tone="bad">{view.error}</Notice>}
          <PaymentForm codes={[...state.merchants.keys()]} view={view} />
        </Card>
        <Faults faults={state.faults} />
        <Addresses state={state} />
        {listTables(state).map((table) => (
          <Records table={table} />
        ))}
      </main>
    </Document>
  )
}

function describeMade(state: SandboxState, transactionId: string) {
  const { merchants } = state
  const isKnown = [...merchants.values()].some(({ transactions }) =>
    transactions.has(transactionId),
  )
  if (!isKnown) return undefined
  const { text, isOver } = describeNotification(state, transactionId)
  const made: StyledText = { tone: 'good', text: `Transaction ${transactionId} was created.` }
  return { notices: [made, text], isOver }
}

/** Links to the service that gets the notifications. */
function ServiceLinks({ ipnUrl }: Pick<SandboxState, 'ipnUrl'>) {
  if (ipnUrl === undefined || !URL.canParse(ipnUrl)) return null
  const { origin } = new URL(ipnUrl)
  if (origin === 'null') return null
  return (
    <>
      The service: <a href={`${origin}/docs`}>API reference</a>,{' '}
      <a href={`${origin}/readyz`}>readiness</a>.{' '}
    </>
  )
}

function PaymentForm({ codes, view }: { codes: readonly string[]; view: PageView }) {
  const { amount = '150000', orderId = '' } = view
  return (
    <form method="post" action="/">
      <label>
        Amount (VND) <input name="amount" value={amount} inputmode="decimal" required />
      </label>
      <label>
        Order id <input name="orderId" value={orderId} maxlength={128} placeholder="made up" />
      </label>
      <Select label="Method" name="paymentMethod" values={METHODS} />
      <Select label="Status" name="status" values={STATUSES} />
      {codes.length > 1 ? <Select label="Merchant" name="merchantCode" values={codes} /> : null}
      <button type="submit">Pay and send the notification</button>
    </form>
  )
}

function Addresses({ state: { ipnUrl, merchants, settings, tokens } }: { state: SandboxState }) {
  const clients = [...merchants.keys()]
    .map(makeDefaultClient)
    .filter(({ clientId, clientSecret }) =>
      tokens.grants.some(
        ({ source }) =>
          source.kind === 'client' &&
          source.clientId === clientId &&
          source.clientSecret === clientSecret,
      ),
    )
  const notifications =
    ipnUrl === undefined ? 'not sent: no notification URL is set' : <code>POST {ipnUrl}</code>
  return (
    <Card title="Addresses">
      <Facts
        rows={[
          ['Notifications', notifications],
          ['Merchant codes', <code>{[...merchants.keys()].join(', ')}</code>],
          ['Queries and refunds', <code>POST {settings.paygatePath}</code>],
          ['Virtual cards', <code>GET /v2/vc/virtual-cards</code>],
          [
            'Card tokens',
            <>
              <code>POST /v2/auth/oauth2/token</code>
              {clients.map(({ clientId, clientSecret }) => (
                <>
                  <br />
                  client <code>{clientId}</code>, secret <code>{clientSecret}</code>
                </>
              ))}
            </>,
          ],
          ['Control routes', <ControlRoutes />],
        ]}
      />
    </Card>
  )
}

function ControlRoutes() {
  const paths = ['transactions', 'payments/{id}', 'refunds/{requestId}/settle', 'refund-mode']
  return (
    <>
      {[...paths, 'cards', 'faults', 'seed'].map((path) => (
        <>
          <code>/sandbox/{path}</code>,{' '}
        </>
      ))}
      <a href="/sandbox/calls">/sandbox/calls</a>, <a href="/sandbox/ledger">/sandbox/ledger</a>
      <br />
      <span class="soft">Example: answer the next three queries with an invalid body:</span>
      <pre>
        {`curl -d '{"command":"QUERY_PT","kind":"garbage","times":3}' <this address>/sandbox/faults`}
      </pre>
    </>
  )
}

function Records({ table: { title, total, columns, rows } }: { table: PageTable }) {
  if (rows.length === 0) {
    return (
      <Card title={title}>
        <p class="soft">None yet.</p>
      </Card>
    )
  }
  const shown = total > rows.length ? `newest ${rows.length} of ${total}` : String(total)
  return (
    <Card title={title} note={shown}>
      <DataTable
        caption={title}
        columns={columns.map((name) => {
          return name === '' ? ACTIONS : { title: name }
        })}
        rows={rows.map((cells) => cells.map((cell) => <Cell cell={cell} />))}
      />
    </Card>
  )
}

const ACTIONS = { title: 'Actions', kind: 'actions' } as const

function Cell({ cell }: { cell: PageCell }) {
  if (typeof cell === 'string') return <>{cell}</>
  if ('actions' in cell) return <Actions actions={cell.actions} />
  return <span class={cell.tone}>{cell.text}</span>
}
