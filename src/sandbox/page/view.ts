import { html } from 'hono/html'
import { makeDefaultClient } from '../cards/tokens.ts'
import type { SandboxState } from '../state.ts'
import { listPageTables, type PageTable } from './tables.ts'
import { describeNotification, type News } from './words.ts'

export const METHODS = ['QR', 'ATM', 'CC'] as const
export const STATUSES = ['SUCCESS', 'PROCESSING', 'FAILED'] as const

type Markup = ReturnType<typeof html>
/** `made`: the transaction the form has just made. `wrong`: why it made none. */
type Told = { made?: string | undefined; wrong?: string; amount?: string }

/** The start page as HTML. Everything that comes from outside is escaped by the template. */
export function showPage(state: SandboxState, told: Told): Markup {
  const made = told.made === undefined ? undefined : describeMade(state, told.made)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${made?.isOver === false ? html`<meta http-equiv="refresh" content="1">` : ''}
<title>Sandbox gateway</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<main>
<h1>Sandbox gateway</h1>
<p class="soft">It plays a payment gateway: no money moves, and all of it is forgotten when it stops.</p>
<section>
<h2>Make a payment</h2>
${(made?.news ?? []).map(showNews)}
${told.wrong === undefined ? '' : showNews({ tone: 'bad', text: `No payment was made. ${told.wrong}` })}
${showForm(state, told.amount ?? '150000')}
</section>
${showFacts(state)}
${listPageTables(state).map(showTable)}
</main>
</body>
</html>`
}

function describeMade(state: SandboxState, transactionId: string) {
  const isKnown = [...state.books.values()].some((book) => book.transactions.has(transactionId))
  if (!isKnown) return undefined
  const { news, isOver } = describeNotification(state, transactionId)
  const made: News = { tone: 'good', text: `Transaction ${transactionId} was made.` }
  return { news: [made, news], isOver }
}

function showNews({ tone, text }: News): Markup {
  return html`<p class="notice ${tone}" role="status">${text}</p>`
}

function showForm({ books }: SandboxState, amount: string): Markup {
  const codes = [...books.keys()]
  return html`<form method="post" action="/">
<label>Amount in VND <input name="amount" value="${amount}" inputmode="decimal" required></label>
${showSelect('Method', 'paymentMethod', METHODS)}
${showSelect('Status', 'status', STATUSES)}
${codes.length > 1 ? showSelect('Merchant', 'merchantCode', codes) : ''}
<button>Pay, and send its notification</button>
</form>`
}

function showSelect(label: string, name: string, values: readonly string[]): Markup {
  return html`<label>${label} <select name="${name}">${values.map((value) => html`<option>${value}</option>`)}</select></label>`
}

function showFacts({ ipnUrl, books, settings, tokens }: SandboxState): Markup {
  const clients = [...books.keys()]
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
<h2>Where things are</h2>
<dl>
<dt>Notifications go to</dt><dd>${ipnUrl === undefined ? 'nowhere: no address is set' : html`<code>${ipnUrl}</code>`}</dd>
<dt>Merchant codes</dt><dd><code>${[...books.keys()].join(', ')}</code></dd>
<dt>Queries and refunds</dt><dd><code>POST ${settings.paygatePath}</code></dd>
<dt>Virtual cards</dt><dd><code>GET /v2/vc/virtual-cards</code></dd>
<dt>Tokens for cards</dt><dd><code>POST /v2/auth/oauth2/token</code>
${clients.map(({ clientId, clientSecret }) => html`<br>client <code>${clientId}</code>, secret <code>${clientSecret}</code>`)}</dd>
<dt>Control routes</dt><dd><code>/sandbox/transactions</code>, <code>/sandbox/payments/{id}</code>,
<code>/sandbox/refunds/{requestId}/settle</code>, <code>/sandbox/cards</code>, <code>/sandbox/faults</code>,
<code>/sandbox/seed</code>, <a href="/sandbox/calls">/sandbox/calls</a>, <a href="/sandbox/ledger">/sandbox/ledger</a>
<br><span class="soft">For example, the next three queries are answered with rubbish:</span>
<pre>curl -d '{"command":"QUERY_PT","kind":"garbage","times":3}' &lt;this address&gt;/sandbox/faults</pre></dd>
</dl>
</section>`
}

function showTable({ title, count, columns, rows }: PageTable): Markup {
  const more = count > rows.length ? `the newest ${rows.length} of ${count}` : String(count)
  if (rows.length === 0) {
    return html`<section><h2>${title}</h2><p class="soft">None yet.</p></section>`
  }
  return html`<section>
<h2>${title} <small>${more}</small></h2>
<table>
<thead><tr>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>
${rows.map((cells) => html`<tr>${cells.map(showCell)}</tr>\n`)}
</tbody>
</table>
</section>`
}

function showCell(cell: string | News): Markup {
  if (typeof cell === 'string') return html`<td>${cell}</td>`
  return html`<td class="${cell.tone}">${cell.text}</td>`
}
