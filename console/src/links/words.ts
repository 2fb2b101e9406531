/** What the forms call the fields of a new link. */
export const LINK_LABELS = { destinationUrl: 'Where the link leads', slug: 'Link code' } as const;

/** The refusal of a link code that another link has. */
export const SLUG_TAKEN = {
  slug_taken: [
    'slug',
    'Another link of this app has this code. Capital letters make no difference. Choose another one.',
  ],
} as const;
