import { ROLES } from '../access/types.ts'
import { t } from './view.ts'

/** The roles of a person, each with what it may do. */
export function describeRoles(roles: readonly string[]) {
  const own = ROLES.filter((role) => roles.includes(role))
  return (
    <>
      {own.map((role) => (
        <div>{t(`account.roles.${role}`)}</div>
      ))}
    </>
  )
}
