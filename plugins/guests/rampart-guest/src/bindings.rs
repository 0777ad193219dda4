//! Bindings generated from `wit/`: the exports of every policy, and one module for each kind.
//!
//! A world of `wit/` is `about` and one of the kinds. They are generated apart because a macro that
//! exports an interface can exist only once in a crate; the tool that makes the component joins them.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    reason = "generated, the comments are in wit/"
)]

pub use about::rampart::policy::types;

pub mod about {
    wit_bindgen::generate!({
        path: "../../../wit",
        inline: "
            package rampart:guest;
            world about { import rampart:policy/log@0.1.0; export rampart:policy/meta@0.1.0; }
        ",
        world: "rampart:guest/about",
        pub_export_macro: true,
        default_bindings_module: "rampart_guest::bindings::about",
        generate_all,
    });
}

pub mod fee {
    wit_bindgen::generate!({
        path: "../../../wit",
        inline: "
            package rampart:guest;
            world fee { export rampart:policy/fee@0.1.0; }
        ",
        world: "rampart:guest/fee",
        pub_export_macro: true,
        default_bindings_module: "rampart_guest::bindings::fee",
        with: { "rampart:policy/types@0.1.0": super::about::rampart::policy::types },
        generate_all,
    });
}

pub mod method_order {
    wit_bindgen::generate!({
        path: "../../../wit",
        inline: "
            package rampart:guest;
            world method-order { export rampart:policy/method-order@0.1.0; }
        ",
        world: "rampart:guest/method-order",
        pub_export_macro: true,
        default_bindings_module: "rampart_guest::bindings::method_order",
        with: { "rampart:policy/types@0.1.0": super::about::rampart::policy::types },
        generate_all,
    });
}

pub mod signature {
    wit_bindgen::generate!({
        path: "../../../wit",
        inline: "
            package rampart:guest;
            world signature { import rampart:policy/crypto@0.1.0; export rampart:policy/signature@0.1.0; }
        ",
        world: "rampart:guest/signature",
        pub_export_macro: true,
        default_bindings_module: "rampart_guest::bindings::signature",
        with: { "rampart:policy/types@0.1.0": super::about::rampart::policy::types },
        generate_all,
    });
}
