import { html } from 'hono/html'
import type { SandboxState } from '../state.ts'

type Markup = ReturnType<typeof html>

/** A button of a table row: its text, the hidden fields it sends, and an amount that can be changed before. */
export type RowAction = {
  label: string
  fields: Readonly<Record<string, string>>
  amount?: string
}

const COMMANDS = ['QUERY_PT', 'REFUND', 'cards', 'token', 'ipn', '*'] as const
const KINDS = [
  'garbage',
  'http500',
  'reset',
  'delay',
  'truncate',
  'code',
  'acceptThenReset',
  'acceptThenHang',
  'acceptThenCode',
] as const

/** Renders the buttons of a row, each a form of its own. */
export function renderActions(actions: readonly RowAction[]): Markup {
  return html`${actions.map(
    ({
      label,
      fields,
      amount,
    }) => html`<form method="post" action="/actions">${renderHidden(fields)}
${amount === undefined ? '' : html`<input name="amount" value="${amount}" size="8" inputmode="decimal" aria-label="Amount to refund">`}
<button>${label}</button></form>`,
  )}`
}

/** Renders the faults that are set, the button that clears them, and the form that adds one. */
export function renderFaults({ faults }: Pick<SandboxState, 'faults'>): Markup {
  return html`<section>
<h2>Faults <small>${String(faults.length)}</small></h2>
${faults.map(({ command, kind, times }) => html`<p><code>${command}</code> ${kind}${times === undefined ? '' : `, ${times} times`}</p>`)}
<form method="post" action="/actions">${renderHidden({ action: 'fault' })}
<label>Command ${renderSelect('command', COMMANDS)}</label>
<label>Kind ${renderSelect('kind', KINDS)}</label>
<label>Times <input name="times" value="1" size="4" inputmode="numeric"></label>
<button>Add the fault</button>
</form>
${faults.length === 0 ? '' : renderActions([{ label: 'Clear all faults', fields: { action: 'behave' } }])}
</section>`
}

function renderSelect(name: string, values: readonly string[]): Markup {
  return html`<select name="${name}">${values.map((value) => html`<option>${value}</option>`)}</select>`
}

function renderHidden(fields: Readonly<Record<string, string>>): Markup {
  return html`${Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}`
}
