/** What has to run after every test: of what is lent to the file that runs now. */
export const cleanups = new Set<() => Promise<void>>()
