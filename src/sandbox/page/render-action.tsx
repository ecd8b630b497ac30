import { Card } from '../../platform/html/components.tsx'
import type { SandboxState } from '../state.ts'

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
export function Actions({ actions }: { actions: readonly RowAction[] }) {
  return (
    <>
      {actions.map(({ label, fields, amount }) => (
        <form method="post" action="/actions">
          <Hidden fields={fields} />
          {amount === undefined ? null : (
            <input
              name="amount"
              value={amount}
              size={8}
              inputmode="decimal"
              aria-label="Amount to refund"
            />
          )}
          <button type="submit">{label}</button>
        </form>
      ))}
    </>
  )
}

/** Renders the faults that are set, the button that clears them, and the form that adds one. */
export function Faults({ faults }: Pick<SandboxState, 'faults'>) {
  return (
    <Card title="Faults" note={String(faults.length)}>
      {faults.map(({ command, kind, times }) => (
        <p>
          <code>{command}</code> {kind}
          {times === undefined ? '' : `, ${times} times`}
        </p>
      ))}
      <form method="post" action="/actions">
        <Hidden fields={{ action: 'fault' }} />
        <Select label="Command" name="command" values={COMMANDS} />
        <Select label="Kind" name="kind" values={KINDS} />
        <label>
          Times <input name="times" value="1" size={4} inputmode="numeric" />
        </label>
        <button type="submit">Add the fault</button>
      </form>
      {faults.length === 0 ? null : (
        <Actions actions={[{ label: 'Clear all faults', fields: { action: 'behave' } }]} />
      )}
    </Card>
  )
}

/** A labelled choice. */
export function Select(props: { label: string; name: string; values: readonly string[] }) {
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

function Hidden({ fields }: { fields: Readonly<Record<string, string>> }) {
  return (
    <>
      {Object.entries(fields).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
    </>
  )
}
