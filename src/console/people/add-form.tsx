import { EVERY_MERCHANT } from '../../access/keys.ts'
import { ROLES } from '../../access/types.ts'
import { Field } from '../../platform/html/components.tsx'
import type { ConsoleRequest, FormFields } from '../env.ts'
import { Form } from '../forms/form.tsx'
import { t } from '../view.ts'
import { listGrantable, merchantField, type PersonProblems, roleField } from './read-person.ts'

/** The form that adds a person; the first field with a problem has the focus. */
export function AddForm(props: { c: ConsoleRequest; form: FormFields; problems: PersonProblems }) {
  const { c, form, problems } = props
  const [first] = Object.keys(problems)
  const merchants = listGrantable(c.get('access')).map((code) => ({
    name: merchantField(code),
    label: code === EVERY_MERCHANT ? t('account.everyMerchant') : code,
  }))
  const roles = ROLES.map((role) => ({ name: roleField(role), label: t(`account.roles.${role}`) }))
  return (
    <Form c={c} action="/console/people" stacked>
      <Field
        name="name"
        label={t('field.name')}
        hint={t('people.add.nameHint')}
        problem={problems.name}
      >
        {(attributes) => (
          <input
            {...attributes}
            value={form.name ?? ''}
            maxlength={140}
            autocomplete="off"
            autofocus={first === 'name'}
          />
        )}
      </Field>
      <Field
        name="email"
        label={t('field.email')}
        hint={t('people.add.emailHint')}
        problem={problems.email}
      >
        {(attributes) => (
          <input
            {...attributes}
            type="email"
            value={form.email ?? ''}
            maxlength={254}
            autocomplete="off"
            autofocus={first === 'email'}
          />
        )}
      </Field>
      <Choices
        {...{
          id: 'roles',
          title: t('field.roles'),
          choices: roles,
          form,
          problem: problems.roles,
        }}
        isFirst={first === 'roles'}
      />
      <Choices
        {...{ id: 'merchants', title: t('field.merchants'), choices: merchants, form }}
        problem={problems.merchants}
        isFirst={first === 'merchants'}
      />
      <button type="submit">{t('people.add.button')}</button>
    </Form>
  )
}

type Choice = { name: string; label: string }

/** Boxes to tick, under one title. */
function Choices(props: {
  id: string
  title: string
  choices: readonly Choice[]
  form: FormFields
  problem: string | undefined
  /** Its problem is the first one of the form. */
  isFirst: boolean
}) {
  const { id, title, choices, form, problem, isFirst } = props
  const problemId = `${id}-problem`
  return (
    <fieldset aria-describedby={problem === undefined ? undefined : problemId}>
      <legend>{title}</legend>
      {choices.map(({ name, label }, at) => (
        <label class="choice">
          <input
            type="checkbox"
            name={name}
            checked={name in form}
            autofocus={isFirst && at === 0}
          />
          {label}
        </label>
      ))}
      {problem === undefined ? null : (
        <span class="problem" id={problemId}>
          {problem}
        </span>
      )}
    </fieldset>
  )
}
