import { Hono } from 'hono'
import { secureHeaders } from 'hono/secure-headers'
import { Card, Facts, Notice } from '../platform/html/components.tsx'
import { Document } from '../platform/html/document.tsx'
import { BASE_STYLE } from '../platform/html/style.ts'
import { listPaths } from './control.ts'
import { COMMANDS, FAULT_KINDS } from './input.ts'
import type { SandboxState } from './state.ts'
import { Button, Tables } from './tables.tsx'
import { listDefaultClients } from './tokens.ts'

/** How often the page reloads (s), by default and while it shows what a form did. */
const REFRESH_S = 5
const REFRESH_AFTER_FORM_S = 1

const SHOW_RESULT_MS = 10_000

const EXAMPLE = '{"command":"QUERY_PT","kind":"garbage","times":3}'

/** The policy is `same-origin` because under `no-referrer` browsers send `Origin: null` with the page's own forms. */
const headers = secureHeaders({
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    styleSrc: ["'self'"],
    imgSrc: ['data:'],
    formAction: ["'self'"],
    baseUri: ["'none'"],
    frameAncestors: ["'none'"],
  },
  referrerPolicy: 'same-origin',
  strictTransportSecurity: false,
})

export function makePageRoutes(state: SandboxState): Hono {
  return new Hono()
    .get('/', headers, (c) => {
      c.header('cache-control', 'no-store')
      return c.html(<Page state={state} isStill={c.req.query('still') !== undefined} />)
    })
    .get('/style.css', (c) =>
      c.body(BASE_STYLE, 200, { 'content-type': 'text/css; charset=utf-8' }),
    )
}

function Page({ state, isStill }: { state: SandboxState; isStill: boolean }) {
  const { formResult } = state
  const isRecent = formResult && performance.now() - formResult.at < SHOW_RESULT_MS
  const result = isRecent ? formResult : undefined
  // An error stays until a person goes on.
  const staysAsItIs = isStill || result?.tone === 'bad'
  const everyS = result ? REFRESH_AFTER_FORM_S : REFRESH_S
  return (
    <Document
      language="en"
      title="Sandbox gateway"
      styles={['/style.css']}
      refresh={staysAsItIs ? undefined : `${everyS};url=/`}
    >
      <main>
        <h1>Sandbox gateway</h1>
        <p class="soft">
          A simulated payment gateway. No money moves, and all data is lost when it stops.
        </p>
        <nav>
          <ServiceLinks ipnUrl={state.ipnUrl} />
          {staysAsItIs ? (
            <a href="/">Refresh every {REFRESH_S} s</a>
          ) : (
            <>
              <a href="/?still">Stop refreshing</a>, to fill in a form
            </>
          )}
        </nav>
        <Card title="Make a payment">
          {result ? <Notice tone={result.tone}>{result.text}</Notice> : null}
          <PaymentForm codes={[...state.merchants.keys()]} />
        </Card>
        <Faults faults={state.faults} />
        <Addresses state={state} />
        <Tables state={state} />
      </main>
    </Document>
  )
}

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

function PaymentForm({ codes }: { codes: readonly string[] }) {
  return (
    <form method="post" action="/sandbox/transactions">
      <label>
        Amount (VND) <input name="payment_amount" value="150000" inputmode="decimal" required />
      </label>
      <label>
        Order id <input name="orderId" maxlength={128} placeholder="made up" />
      </label>
      <Select label="Method" name="payment_paymentMethod" values={['QR', 'ATM', 'CC']} />
      <Select label="Status" name="payment_status" values={['SUCCESS', 'PROCESSING', 'FAILED']} />
      {codes.length > 1 ? <Select label="Merchant" name="merchantCode" values={codes} /> : null}
      <button type="submit">Pay and send the notification</button>
    </form>
  )
}

function Faults({ faults }: Pick<SandboxState, 'faults'>) {
  return (
    <Card title="Faults" note={String(faults.length)}>
      {faults.map(({ command, kind, times }) => (
        <p>
          <code>{command}</code> {kind}
          {times === undefined ? '' : `, ${times} times`}
        </p>
      ))}
      <form method="post" action="/sandbox/faults">
        <Select label="Command" name="command" values={COMMANDS} />
        <Select label="Kind" name="kind" values={FAULT_KINDS} />
        <label>
          Times <input name="times" value="1" size={4} inputmode="numeric" />
        </label>
        <button type="submit">Add the fault</button>
      </form>
      {faults.length === 0 ? null : (
        <Button
          label="Clear all faults"
          to="/sandbox/faults?method=DELETE"
          fields={{ faults: 'all' }}
        />
      )}
    </Card>
  )
}

function Select(props: { label: string; name: string; values: readonly string[] }) {
  const { label, name, values } = props
  return (
    <label>
      {label}{' '}
      <select name={name}>
        {values.map((value) => (
          <option>{value}</option>
        ))}
      </select>
    </label>
  )
}

function Addresses({ state }: { state: SandboxState }) {
  const { ipnUrl, settings, merchants } = state
  const clients = listDefaultClients(state).map(
    ({ clientId, clientSecret }) => `; client ${clientId}, secret ${clientSecret}`,
  )
  const notifications = ipnUrl === undefined ? 'not sent: no URL is set' : `POST ${ipnUrl}`
  return (
    <Card title="Addresses">
      <Facts
        rows={[
          ['Notifications', <code>{notifications}</code>],
          ['Merchant codes', <code>{[...merchants.keys()].join(', ')}</code>],
          ['Queries and refunds', <code>POST {settings.paygatePath}</code>],
          ['Virtual cards', <code>GET /v2/vc/virtual-cards</code>],
          ['Card tokens', <code>POST /v2/auth/oauth2/token{clients.join('')}</code>],
          [
            'Control routes',
            <>
              {listPaths().map((path) => (
                <>
                  <code>/sandbox{path}</code>,{' '}
                </>
              ))}
              <a href="/sandbox/calls">/sandbox/calls</a>,{' '}
              <a href="/sandbox/ledger">/sandbox/ledger</a>
              <pre>{`curl -d '${EXAMPLE}' <this address>/sandbox/faults`}</pre>
            </>,
          ],
        ]}
      />
    </Card>
  )
}
