import type { MerchantAccount } from '../config/accounts.ts'

/** Where the configured accounts stand. A reload replaces the list as a whole and changes no part of it. */
export type AccountDirectory = { accounts: readonly MerchantAccount[] }

/** Returns a function that returns what is derived from the present accounts: computed again only after a reload. */
export function deriveFromAccounts<D extends AccountDirectory, T>(
  directory: D,
  derive: (directory: D) => T,
): () => T {
  let { accounts } = directory
  let derived = derive(directory)
  return () => {
    if (directory.accounts !== accounts) {
      accounts = directory.accounts
      derived = derive(directory)
    }
    return derived
  }
}
