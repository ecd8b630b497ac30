import type { Context } from '../context.ts'

/**
 * Erases the webhook secrets from before a rotation whose time has come. They no longer sign anything.
 * @returns the number of secrets erased
 */
export async function eraseSecrets({ sql }: Pick<Context, 'sql'>): Promise<number> {
  const erased = await sql`
    update webhook_endpoints set previous_secret = null, previous_secret_until = null
    where previous_secret_until <= now()`
  return erased.count
}
