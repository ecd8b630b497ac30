import { ROLES } from '../access/types.ts'
import { TEXTS } from './texts/en.ts'

/** The roles of a person, each with what it may do. */
export function describeRoles(roles: readonly string[]) {
  const own = ROLES.filter((role) => roles.includes(role))
  return (
    <>
      {own.map((role) => (
        <div>{TEXTS.account.roles[role]}</div>
      ))}
    </>
  )
}
