import { z } from 'zod'
import { EVERY_MERCHANT } from '../../access/keys.ts'
import { type NewPerson, PersonEmail, PersonName } from '../../access/people.ts'
import { type Access, ROLES } from '../../access/types.ts'
import type { FormFields } from '../env.ts'
import { t } from '../view.ts'

/** The names of the fields of a choice. */
export const roleField = (role: string) => `role-${role}`
export const merchantField = (merchantCode: string) => `merchant-${merchantCode}`

/** The accounts that an admin can give to others: their own, and all of them only with all of them. */
export function listGrantable({ coversAll, merchants }: Access): readonly string[] {
  return coversAll ? [EVERY_MERCHANT, ...merchants] : merchants
}

/** What is wrong with the form, by field. */
export type PersonProblems = { [field in keyof NewPerson]?: string }

export type ReadPerson =
  | { kind: 'valid'; person: NewPerson }
  | { kind: 'invalid'; problems: PersonProblems }

/** Reads the form of a new person. Accounts that the admin cannot give are none of its fields. */
export function readPerson(form: FormFields, access: Access): ReadPerson {
  const name = PersonName.safeParse(form.name ?? '')
  const typed = form.email?.trim() ?? ''
  const email = z.union([z.literal(''), PersonEmail]).safeParse(typed)
  const roles = ROLES.filter((role) => roleField(role) in form)
  const merchants = listGrantable(access).filter((code) => merchantField(code) in form)
  const problems = {
    ...(name.success ? {} : { name: t('people.add.problems.name') }),
    ...(email.success ? {} : { email: t('people.add.problems.email') }),
    ...(roles.length > 0 ? {} : { roles: t('people.add.problems.roles') }),
    ...(merchants.length > 0 ? {} : { merchants: t('people.add.problems.merchants') }),
  }
  if (!name.success || !email.success || Object.keys(problems).length > 0) {
    return { kind: 'invalid', problems }
  }
  return {
    kind: 'valid',
    person: { name: name.data, email: email.data || null, roles, merchants },
  }
}
