import { html } from 'hono/html'
import { makeDefaultClient } from '../cards/tokens.ts'
import type { SandboxState } from '../state.ts'
import { describeNotification, type StyledText } from './describe-entry.ts'
import { listTables, type PageCell, type PageTable } from './list-tables.ts'
import { renderActions, renderFaults } from './render-action.ts'

export const METHODS = ['QR', 'ATM', 'CC'] as const
export const STATUSES = ['SUCCESS', 'PROCESSING', 'FAILED'] as const

type Markup = ReturnType<typeof html>

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

/** Renders the start page. The template escapes all values. */
export function renderPage(state: SandboxState, view: PageView): Markup {
  const made = view.made === undefined ? undefined : describeMade(state, view.made)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${view.still ? '' : html`<meta http-equiv="refresh" content="${made?.isOver === false ? 1 : `${REFRESH_S};url=/`}">`}
<title>Sandbox gateway</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<main>
<h1>Sandbox gateway</h1>
<p class="soft">A simulated payment gateway. No money moves, and all data is lost when it stops.</p>
<nav>${renderLinks(state)}${view.still ? html`<a href="/">Refresh every ${REFRESH_S} s</a>` : html`<a href="/?still">Stop refreshing</a>, to fill in a form`}</nav>
<section>
<h2>Make a payment</h2>
${(made?.notices ?? []).map(renderNotice)}
${view.done === undefined ? '' : renderNotice({ tone: 'good', text: view.done })}
${view.error === undefined ? '' : renderNotice({ tone: 'bad', text: view.error })}
${renderForm(state, view)}
</section>
${renderFaults(state)}
${renderAddresses(state)}
${listTables(state).map(renderTable)}
</main>
</body>
</html>`
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

function renderNotice({ tone, text }: StyledText): Markup {
  return html`<p class="notice ${tone}" role="status">${text}</p>`
}

/** Links to the service that gets the notifications. */
function renderLinks({ ipnUrl }: SandboxState): Markup {
  if (ipnUrl === undefined || !URL.canParse(ipnUrl)) return html``
  const { origin } = new URL(ipnUrl)
  if (origin === 'null') return html``
  return html`The service: <a href="${origin}/docs">API reference</a>, <a href="${origin}/readyz">readiness</a>. `
}

function renderForm(
  { merchants }: SandboxState,
  { amount = '150000', orderId = '' }: PageView,
): Markup {
  const codes = [...merchants.keys()]
  return html`<form method="post" action="/">
<label>Amount (VND) <input name="amount" value="${amount}" inputmode="decimal" required></label>
<label>Order id <input name="orderId" value="${orderId}" maxlength="128" placeholder="made up"></label>
${renderSelect('Method', 'paymentMethod', METHODS)}
${renderSelect('Status', 'status', STATUSES)}
${codes.length > 1 ? renderSelect('Merchant', 'merchantCode', codes) : ''}
<button>Pay and send the notification</button>
</form>`
}

function renderSelect(label: string, name: string, values: readonly string[]): Markup {
  return html`<label>${label} <select name="${name}">${values.map((value) => html`<option>${value}</option>`)}</select></label>`
}

function renderAddresses({ ipnUrl, merchants, settings, tokens }: SandboxState): Markup {
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
  return html`<section>
<h2>Addresses</h2>
<dl>
<dt>Notifications</dt><dd>${ipnUrl === undefined ? 'not sent: no notification URL is set' : html`<code>POST ${ipnUrl}</code>`}</dd>
<dt>Merchant codes</dt><dd><code>${[...merchants.keys()].join(', ')}</code></dd>
<dt>Queries and refunds</dt><dd><code>POST ${settings.paygatePath}</code></dd>
<dt>Virtual cards</dt><dd><code>GET /v2/vc/virtual-cards</code></dd>
<dt>Card tokens</dt><dd><code>POST /v2/auth/oauth2/token</code>
${clients.map(({ clientId, clientSecret }) => html`<br>client <code>${clientId}</code>, secret <code>${clientSecret}</code>`)}</dd>
<dt>Control routes</dt><dd><code>/sandbox/transactions</code>, <code>/sandbox/payments/{id}</code>,
<code>/sandbox/refunds/{requestId}/settle</code>, <code>/sandbox/refund-mode</code>, <code>/sandbox/cards</code>, <code>/sandbox/faults</code>,
<code>/sandbox/seed</code>, <a href="/sandbox/calls">/sandbox/calls</a>, <a href="/sandbox/ledger">/sandbox/ledger</a>
<br><span class="soft">Example: answer the next three queries with an invalid body:</span>
<pre>curl -d '{"command":"QUERY_PT","kind":"garbage","times":3}' &lt;this address&gt;/sandbox/faults</pre></dd>
</dl>
</section>`
}

function renderTable({ title, total, columns, rows }: PageTable): Markup {
  const shown = total > rows.length ? `newest ${rows.length} of ${total}` : String(total)
  if (rows.length === 0) {
    return html`<section><h2>${title}</h2><p class="soft">None yet.</p></section>`
  }
  return html`<section>
<h2>${title} <small>${shown}</small></h2>
<table>
<thead><tr>${columns.map((name) => (name === '' ? html`<td></td>` : html`<th scope="col">${name}</th>`))}</tr></thead>
<tbody>
${rows.map((cells) => html`<tr>${cells.map(renderCell)}</tr>\n`)}
</tbody>
</table>
</section>`
}

function renderCell(cell: PageCell): Markup {
  if (typeof cell === 'string') return html`<td>${cell}</td>`
  if ('actions' in cell) return html`<td>${renderActions(cell.actions)}</td>`
  return html`<td class="${cell.tone}">${cell.text}</td>`
}
