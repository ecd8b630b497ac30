import type { Child } from 'hono/jsx'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { Field } from '../../platform/html/components.tsx'
import { formatMoney } from '../format-money.ts'
import { t } from '../view.ts'
import {
  type FieldName,
  type FieldProblems,
  findFirst,
  MAX_REMARK,
  OTHER_REASON,
  RECEIVER_FIELDS,
  type RefundValues,
} from './fields.ts'
import type { RefundSubject } from './flow.ts'

/** A form as it is shown. */
export type FormState = {
  subject: RefundSubject
  /** The signed ticket. */
  ticket: string
  reasons: readonly string[]
  values: RefundValues
  problems?: FieldProblems
  /** Stand above everything else. */
  alerts?: readonly Child[]
  status?: ContentfulStatusCode
}

/** The attributes of the first field with a problem, which gets the focus. */
function focusOn({ problems = {} }: FormState, name: FieldName) {
  return findFirst(problems) === name ? { autofocus: true } : {}
}

/** How much is refunded: all that is left comes first. */
export function AmountFields({ state }: { state: FormState }) {
  const { subject, values, problems = {} } = state
  const isPart = values.amountKind === 'part'
  const described =
    problems.amountKind === undefined ? {} : { 'aria-describedby': 'amountKind-problem' }
  return (
    <>
      <fieldset {...described}>
        <legend>{t('refundForm.form.howMuch')}</legend>
        <label class="choice">
          <input
            type="radio"
            name="amountKind"
            value="all"
            checked={!isPart}
            {...focusOn(state, 'amountKind')}
          />
          <span>
            {t('refundForm.form.all', { left: formatMoney(subject.left, subject.currency) })}
          </span>
        </label>
        <label class="choice">
          <input type="radio" name="amountKind" value="part" checked={isPart} />
          <span>{t('refundForm.form.part')}</span>
        </label>
        {problems.amountKind === undefined ? null : (
          <span class="problem" id="amountKind-problem">
            {problems.amountKind}
          </span>
        )}
      </fieldset>
      <Field
        name="amount"
        label={t('refundForm.form.amount')}
        hint={t('refundForm.form.amountHint')}
        problem={problems.amount}
      >
        {(attributes) => (
          <input
            {...attributes}
            value={values.amount}
            inputmode="decimal"
            autocomplete="off"
            {...focusOn(state, 'amount')}
          />
        )}
      </Field>
    </>
  )
}

/** Who receives it: one account, in three fields. */
export function ReceiverFields({ state }: { state: FormState }) {
  const { values, problems = {} } = state
  const hints = {
    accountName: t('refundForm.form.accountNameHint'),
    accountNumber: undefined,
    swiftCode: undefined,
  }
  return (
    <fieldset>
      <legend>{t('refundForm.form.receiver')}</legend>
      <p class="hint">{t('refundForm.form.receiverHint')}</p>
      {RECEIVER_FIELDS.map((name) => (
        <Field
          name={name}
          label={t(`refundForm.form.${name}`)}
          hint={hints[name]}
          problem={problems[name]}
        >
          {(attributes) => (
            <input
              {...attributes}
              value={values[name]}
              aria-required="true"
              maxlength={140}
              autocomplete="off"
              spellcheck={false}
              {...focusOn(state, name)}
            />
          )}
        </Field>
      ))}
    </fieldset>
  )
}

/** Why it is refunded: one of the account's reasons, and a remark. */
export function ReasonFields({ state }: { state: FormState }) {
  const { values, problems = {}, reasons } = state
  const options = [
    { value: '', text: t('refundForm.form.chooseReason') },
    ...reasons.map((text) => ({ value: text, text })),
    { value: OTHER_REASON, text: t('refundForm.form.otherReason') },
  ]
  return (
    <>
      <Field name="reason" label={t('field.reason')} problem={problems.reason}>
        {(attributes) => (
          <select {...attributes} aria-required="true" {...focusOn(state, 'reason')}>
            {options.map(({ value, text }) => (
              <option value={value} selected={value === values.reason}>
                {text}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field
        name="reasonText"
        label={t('field.reasonRemark')}
        hint={t('refundForm.form.reasonTextHint')}
        problem={problems.reasonText}
      >
        {(attributes) => (
          <input
            {...attributes}
            value={values.reasonText}
            maxlength={MAX_REMARK}
            autocomplete="off"
            {...focusOn(state, 'reasonText')}
          />
        )}
      </Field>
    </>
  )
}
