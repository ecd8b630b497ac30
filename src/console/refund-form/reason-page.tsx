import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { Card, DataTable, Field, Notice } from '../../platform/html/components.tsx'
import type { RefundReason } from '../../refunds/reasons.ts'
import type { ConsoleRequest } from '../env.ts'
import { Form } from '../forms/form.tsx'
import { renderConsolePage } from '../layout.tsx'
import { TEXTS } from '../texts/en.ts'
import { DEFAULT_REASONS } from '../texts/refund-form.ts'

const texts = TEXTS.reasons

/** The path of the page. */
export const REASONS_PATH = '/console/reasons'

export type ReasonPage = {
  /** The accounts that the person may see. */
  merchants: readonly string[]
  merchantCode: string
  /** Of the account; none if it keeps no list of its own. */
  reasons: readonly RefundReason[]
  /** What was typed last, where it was refused: the id of the reason to rename, or undefined for a new one. */
  refused?: { id: number | undefined; label: string; problem: string }
  alert?: string
  status?: ContentfulStatusCode
}

/** Answers with the list of an account, and the forms that change it. */
export function renderReasons(c: ConsoleRequest, page: ReasonPage) {
  const { merchants, merchantCode, reasons, alert, status = 200 } = page
  return renderConsolePage(
    c,
    { title: texts.title, current: 'reasons', status },
    <>
      {alert === undefined ? null : <Notice tone="bad">{alert}</Notice>}
      <p>{texts.intro}</p>
      {merchants.length > 1 ? <ChooseAccount page={page} /> : null}
      <Card title={texts.list(merchantCode)}>
        {reasons.length > 0 ? <List c={c} page={page} /> : <Defaults />}
      </Card>
      <Card title={texts.add}>
        <AddForm c={c} page={page} />
      </Card>
    </>,
  )
}

function ChooseAccount({ page: { merchants, merchantCode } }: { page: ReasonPage }) {
  return (
    <form method="get" action={REASONS_PATH}>
      <Field name="merchant" label={texts.account}>
        {(attributes) => (
          <select {...attributes}>
            {merchants.map((code) => (
              <option value={code} selected={code === merchantCode}>
                {code}
              </option>
            ))}
          </select>
        )}
      </Field>
      <button class="quiet" type="submit">
        {texts.show}
      </button>
    </form>
  )
}

function Defaults() {
  return (
    <>
      <p>{texts.defaults}</p>
      <ul>
        {DEFAULT_REASONS.map((label) => (
          <li>{label}</li>
        ))}
      </ul>
    </>
  )
}

function List({ c, page }: { c: ConsoleRequest; page: ReasonPage }) {
  return (
    <DataTable
      caption={texts.list(page.merchantCode)}
      columns={[{ title: texts.columns.reason }, { title: texts.columns.actions, kind: 'actions' }]}
      rows={page.reasons.map((reason, at) => [
        reason.label,
        <ReasonActions c={c} page={page} reason={reason} isFirst={at === 0} />,
      ])}
    />
  )
}

function ReasonActions(props: {
  c: ConsoleRequest
  page: ReasonPage
  reason: RefundReason
  isFirst: boolean
}) {
  const { c, page, reason, isFirst } = props
  const { merchantCode: merchant, refused } = page
  const fields = { merchant, id: String(reason.id) }
  const typed = refused?.id === reason.id ? refused : undefined
  const name = `label-${reason.id}`
  return (
    <>
      <Form c={c} action={REASONS_PATH} fields={fields}>
        <Field name={name} label={texts.label(reason.label)} problem={typed?.problem}>
          {(attributes) => (
            <input
              {...attributes}
              value={typed?.label ?? reason.label}
              maxlength={80}
              autocomplete="off"
              {...(typed ? { autofocus: true } : {})}
            />
          )}
        </Field>
        <ActionButton action="rename" text={texts.rename} of={texts.renameOf(reason.label)} />
      </Form>
      <Form c={c} action={REASONS_PATH} fields={fields}>
        {isFirst ? null : (
          <ActionButton action="raise" text={texts.raise} of={texts.raiseOf(reason.label)} />
        )}
        <ActionButton action="end" text={texts.end} of={texts.endOf(reason.label)} />
      </Form>
    </>
  )
}

/** A button whose visible text is short; assistive technology reads which reason it is about. */
function ActionButton({ action, text, of }: { action: string; text: string; of: string }) {
  return (
    <button class="quiet" type="submit" name="action" value={action} aria-label={of}>
      {text}
    </button>
  )
}

function AddForm({
  c,
  page: { merchantCode: merchant, refused },
}: {
  c: ConsoleRequest
  page: ReasonPage
}) {
  const typed = refused && refused.id === undefined ? refused : undefined
  return (
    <Form c={c} action={REASONS_PATH} stacked fields={{ merchant }}>
      <Field name="label" label={texts.newLabel} hint={texts.newLabelHint} problem={typed?.problem}>
        {(attributes) => (
          <input
            {...attributes}
            value={typed?.label ?? ''}
            maxlength={80}
            autocomplete="off"
            {...(typed ? { autofocus: true } : {})}
          />
        )}
      </Field>
      <div class="row">
        <button type="submit" name="action" value="add">
          {texts.addButton}
        </button>
      </div>
    </Form>
  )
}
