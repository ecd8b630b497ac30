import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { Card, DataTable, Field, Notice } from '../../platform/html/components.tsx'
import type { RefundReason } from '../../refunds/reasons.ts'
import type { ConsoleRequest } from '../env.ts'
import { Form } from '../forms/form.tsx'
import { renderConsolePage } from '../layout.tsx'
import { listTexts, t } from '../view.ts'

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
    { title: t('frame.pages.reasons'), current: 'reasons', status },
    <>
      {alert === undefined ? null : <Notice tone="bad">{alert}</Notice>}
      <p>{t('reasons.intro')}</p>
      {merchants.length > 1 ? <ChooseAccount page={page} /> : null}
      <Card title={t('reasons.list', { merchantCode })}>
        {reasons.length > 0 ? <List c={c} page={page} /> : <Defaults />}
      </Card>
      <Card title={t('reasons.add')}>
        <AddForm c={c} page={page} />
      </Card>
    </>,
  )
}

function ChooseAccount({ page: { merchants, merchantCode } }: { page: ReasonPage }) {
  return (
    <form method="get" action={REASONS_PATH}>
      <Field name="merchant" label={t('field.account')}>
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
        {t('lists.submit')}
      </button>
    </form>
  )
}

function Defaults() {
  return (
    <>
      <p>{t('reasons.defaults')}</p>
      <ul>
        {listTexts('reasons.default').map(([, label]) => (
          <li>{label}</li>
        ))}
      </ul>
    </>
  )
}

function List({ c, page }: { c: ConsoleRequest; page: ReasonPage }) {
  return (
    <DataTable
      caption={t('reasons.list', { merchantCode: page.merchantCode })}
      columns={[{ title: t('field.reason') }, { title: t('field.actions'), kind: 'actions' }]}
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
        <Field
          name={name}
          label={t('reasons.label', { label: reason.label })}
          problem={typed?.problem}
        >
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
        <ActionButton
          action="rename"
          text={t('reasons.rename')}
          of={t('reasons.renameOf', { label: reason.label })}
        />
      </Form>
      <Form c={c} action={REASONS_PATH} fields={fields}>
        {isFirst ? null : (
          <ActionButton
            action="raise"
            text={t('reasons.raise')}
            of={t('reasons.raiseOf', { label: reason.label })}
          />
        )}
        <ActionButton
          action="end"
          text={t('reasons.end')}
          of={t('reasons.endOf', { label: reason.label })}
        />
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
      <Field
        name="label"
        label={t('reasons.newLabel')}
        hint={t('reasons.newLabelHint')}
        problem={typed?.problem}
      >
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
          {t('reasons.addButton')}
        </button>
      </div>
    </Form>
  )
}
